// What-if: a run's steps under changes that nobody has made yet.
//
//   recorded run ──▶ StepGraph ──┬─ changes that keep the order: operations take other times ──▶ replay_worlds()
//                                └─ another order (schedule, chunks, micro-batches) ──▶ OrderModel::step_ns()
//
// A price is a difference of two replays of the same model, never of a replay and a recording: what a model gets wrong
// of the present is taken off both sides. Pure functions of a
// WhatIf that was built once: a viewer may ask at every move of a slider. Definitions: docs/analyses/what-if.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "diagnosis/what_if/other_order.h"
#include "facts/pipeline_facts.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

// Operations that take another time. kUnknown: any; without a kind, all F, B, I, W and F&B.
struct CellScale {
  int32_t stage = kUnknown, rank = kUnknown, dp = kUnknown, chunk = kUnknown, micro_batch = kUnknown, step = kUnknown;
  std::optional<CellKind> kind = {};  // NOLINT(readability-redundant-member-init): GCC wants it
  double by = 1;                      // times its own duration
  std::optional<double> set_ns = {};  // NOLINT(readability-redundant-member-init): or this
  bool operator==(const CellScale&) const = default;
};

// One world. What is left at its default stays as recorded.
struct Changes {
  // NOLINTBEGIN(readability-redundant-member-init): GCC wants it
  std::vector<CellScale> scales = {};  // in order, each on what the ones before left
  // Workers (dp, stage): their cells at the mean of the other replicas' same cells.
  std::vector<std::pair<int32_t, int32_t>> replaced = {};
  std::vector<DirectionCost> stage_factor = {};  // by virtual stage of the present schedule; empty: 1
  int32_t fair_stage = kUnknown;  // its operations take what their type does over all stages, replicas and steps
  bool fair_cells = false;        // every cell takes the mean of its rank, kind and chunk
  bool fair_links = false;        // links slower than the median of their class are as fast as that
  bool no_delay = false;          // no launch delays
  std::optional<double> latency_ns = {};  // of every message
  std::string schedule = {};              // "" : the present one
  // NOLINTEND(readability-redundant-member-init)
  int32_t chunks = 0, group = 0;  // with schedule; 0: its default
  int32_t micro_batches = 0;      // 0: as many as there are
  bool changes_order() const { return !schedule.empty() || micro_batches > 0; }
  bool operator==(const Changes&) const = default;
};

// Both of them at once. Order changes of `b` win.
Changes combined(const Changes& a, const Changes& b);

// Means over the steps that count. Of other numbers of micro-batches times are those of as many micro-batches as the
// run has: the new step's time times old ÷ new.
struct Price {
  double recorded_ns = 0;  // as recorded
  double step_ns = 0;      // recorded − saving
  double saving_ns = 0;    // replay of the present run − replay of the changed one; below 0: it costs
  double error_ns = 0;     // standard error of the saving over steps; NaN of a single step
  int64_t steps = 0;       // that it stands on
  double held = 0;         // most activations of a rank, in stages of one micro-batch; NaN where nobody knows
  std::string why_not;     // not empty: it could not be priced
  double share() const { return recorded_ns > 0 ? saving_ns / recorded_ns : 0; }
  // It is a gain, and more than chance: above kSureErrors standard errors and kLeastShare of the step.
  bool gains() const;
};
inline constexpr double kSureErrors = 2, kLeastShare = 0.001;

// How well the models replay what happened, mean over steps.
struct ModelError {
  double recorded_ns = 0;
  double graph_ns = 0;  // replay of the graph
  double order_ns = 0;  // replay of the recognised schedule; NaN without
};

// What a model is asked for.
enum class WhatIfUse : uint8_t {
  kAll,
  kOrders,  // other orders and Changes::stage_factor alone: what else changes needs is not measured, and stays as it is
};

class WhatIf {
 public:
  // `graph`: graph_of(run, LaunchRule::kFree). Steps of at least 1.3 × the median (PipelineSums::outliers) are
  // left out of prices; `notes` gets that. O(cells log cells).
  static WhatIf of(const Run& run, std::shared_ptr<const StepGraph> graph, Diagnostics& notes,
                   WhatIfUse use = WhatIfUse::kAll);

  // One price a world, side by side. Thread-safe, the same bytes whatever the number of threads. O(operations ·
  // worlds). A world that cannot be (an unknown schedule, a worker that is not there) says why.
  std::vector<Price> prices(std::span<const Changes> worlds) const;
  Price price(const Changes& world) const { return prices({&world, 1}).front(); }
  // Step times of one world, by StepGraph::steps, in the sense of Price::step_ns; NaN where a step could not be told.
  std::vector<double> step_times(const Changes& world) const { return priced(world).step_ns; }
  // Both, from one replay.
  struct Priced {
    Price price;
    std::vector<double> step_ns;
  };
  Priced priced(const Changes& world) const;

  // One step of a world, cell by cell, from the step's start. Of worlds that keep the order every recorded operation,
  // `part` and `cell` as in StepGraph; of others the cells of the pipelines alone (kUnknown, kNoCell). Empty where it
  // cannot be told. `step`: into StepGraph::steps; `dp`: of one replica, and of ranks that are in none. O(operations of
  // the step), of another order O(operations).
  struct WorldCell {
    int32_t part = kUnknown, dp = kUnknown, stage = kUnknown, chunk = kUnknown, micro_batch = kUnknown;
    uint32_t cell = kNoCell;
    CellKind kind = CellKind::kForward;
    double start_ns = 0, end_ns = 0;
  };
  std::vector<WorldCell> step_cells(const Changes& world, uint32_t step, int32_t dp = kUnknown) const;

  // The order that a world runs in. Errors: those of compile_order(); kUnavailable where no order is known.
  Result<OrderPlan> plan_of(const Changes& changes) const;

  const StepGraph& graph() const { return *graph_; }
  const OrderModel& order() const { return order_; }
  const ModelError& error() const { return error_; }
  // The split into layers that order changes assume: which of the ends' cost is embedding and head. By default of
  // stages with equally many layers.
  void set_layers(const std::vector<int32_t>& layers) { layers_ = layer_costs(order_.stages(), layers); }
  const LayerCosts& layers() const { return layers_; }
  // Every stage of the run has operations. Else what a rank waits for is not there, and looks like its own delay.
  bool whole() const { return whole_; }
  const std::vector<uint8_t>& counts() const { return counts_; }  // by step: not an outlier
  bool has_stage(int32_t stage, int32_t dp) const;
  // Sums over a worker's cells of what they took and of what the same cells of the other replicas did, [step][dp ·
  // stages + stage]; empty without other replicas, and where most workers have no cells. O(operations).
  struct WorkerStep {
    double own_ns = 0, others_ns = 0;
  };
  std::vector<WorkerStep> workers() const;
  // Operations that a scale touches.
  int64_t touched(const CellScale& scale) const;
  bool touches(const CellScale& scale) const;
  int32_t rank_of(size_t op) const { return ranks_[static_cast<size_t>(graph_->part[op])]; }

 private:
  friend class PackedModel;
  struct World;  // Changes as rules for operations
  World world_of(const Changes& changes) const;
  bool fits_op(const CellScale& scale, size_t op) const;
  std::vector<double> order_times(const World& world, const OrderPlan& plan) const;
  void to_present_size(const OrderPlan& plan, std::vector<double>& step_ns) const;
  void apply(const World& world, uint32_t op, double& dur_ns, double& delay_ns) const;
  // The same of operations [begin, end), into dur_ns[0 …] and delay_ns[0 …].
  void apply(const World& world, uint32_t begin, uint32_t end, double* dur_ns, double* delay_ns) const;
  OpTimes times_of(const World& world) const;
  OpTimesView present_times() const { return {*graph_, launch_ns_}; }  // of the world without changes
  void measure_others();
  void measure_usual();
  void measure_links(const Trace& trace);
  Price price_of(const std::vector<double>& before, const std::vector<double>& after, double held) const;

  std::shared_ptr<const StepGraph> graph_;
  OrderModel order_;
  LayerCosts layers_;
  ModelError error_;
  bool whole_ = true;
  std::vector<int32_t> ranks_;                         // by part
  std::vector<uint8_t> counts_;                        // by step
  uint32_t step_of(size_t op) const;                   // index into steps
  std::vector<double> launch_ns_;                      // by type: most launch delay of what is no compute cell
  std::vector<double> others_ns_;                      // by operation: the other replicas' mean of the same cell; NaN
  std::vector<double> usual_ns_;                       // by operation: the mean of its rank, kind and chunk
  std::vector<float> link_factor_;                     // by operation: of its link, to be at the median of its class; 1
  std::vector<double> fair_ns_;                        // by type: mean of compute, median of communication
  std::vector<double> graph_step_ns_, order_step_ns_;  // replays of the recorded times, by step
};

// The model of a run, of its graph with free launches. `notes` gets what that graph assumes too. Errors: those of
// build_step_graph().
Result<WhatIf> what_if_of(const Run& run, Diagnostics& notes);

}  // namespace stageline
