// What-if: simulates a run's steps under changes.
//
//   recorded run ──▶ StepGraph ──┬─ changes that keep the order: operations take other times ──▶ replay_worlds()
//                                └─ another order (schedule, chunks, micro-batches) ──▶ OrderModel::step_ns()
//
// A price is the difference of two replays of the same model, never of a replay and a recording, so that errors of the
// model about the present cancel out. All questions are pure functions of a WhatIf that was built once: a viewer may
// ask at every move of a slider. docs/analyses/what-if.md has the definitions.
#pragma once

#include "diagnosis/what_if/other_order.h"
#include "facts/pipeline_facts.h"
#include "pipeline/replay/step_replay.h"

namespace stageline {

// Operations whose times are changed. kUnknown: any; without a kind: all F, B, I, W and F&B.
struct CellScale {
  int32_t stage = kUnknown, rank = kUnknown, dp = kUnknown, chunk = kUnknown, micro_batch = kUnknown, step = kUnknown;
  std::optional<CellKind> kind;
  double by = 1;                 // factor of their durations
  std::optional<double> set_ns;  // if set, their duration instead
  bool operator==(const CellScale&) const = default;
};

// One scenario. Members with their default value stay as recorded.
struct Changes {
  std::vector<CellScale> scales;  // applied in order, each to what the earlier ones left
  // Workers (dp, stage) whose cells take the mean of the same cells of other replicas.
  std::vector<std::pair<int32_t, int32_t>> replaced;
  std::vector<DirectionCost> stage_factor;  // for each virtual stage of the present schedule; empty: all 1
  // Its operations take the fair time of their type, over all stages, replicas and steps.
  int32_t fair_stage = kUnknown;
  bool fair_cells = false;           // every cell takes the mean of its rank, kind and chunk
  bool fair_links = false;           // links slower than the median of their class take that median
  bool no_delay = false;             // no launch delays
  std::optional<double> latency_ns;  // the time that every message takes
  std::string schedule;              // "": the present one
  int32_t chunks = 0, group = 0;     // chunks and group of `schedule`; 0: its default
  int32_t micro_batches = 0;         // 0: as many as in the run
  // The number of forwards that 1f1b has in addition before the first backward, by stage; never rising. Empty: none.
  std::vector<int32_t> more_in_flight;
  bool changes_order() const { return !schedule.empty() || micro_batches > 0 || !more_in_flight.empty(); }
  bool operator==(const Changes&) const = default;
};

// The changes of both. Where both change the order, `b` wins.
Changes combined(const Changes& a, const Changes& b);

// Means over the steps that count. With another number of micro-batches, times are scaled to the run's number: the new
// step's time × old ÷ new.
struct Price {
  double recorded_ns = 0;  // mean period as recorded: from a step's start to the next one's, as explain gives it
  double step_ns = 0;      // recorded − saving
  double saving_ns = 0;    // replay of the present run − replay of the changed run; below 0: the change costs time
  double error_ns = 0;     // standard error of the saving over steps; NaN with one step
  int64_t steps = 0;       // number of steps in the means
  double held = 0;  // most activations that a rank holds, in units of one stage's for one micro-batch; NaN: unknown
  Text why_not;     // why it could not be priced; empty where it was
  double share() const { return recorded_ns > 0 ? saving_ns / recorded_ns : 0; }
  // True when it saves time above noise: more than kSureErrors standard errors, and at least kMinShare of the step.
  bool gains() const;
};
inline constexpr double kSureErrors = 2, kMinShare = 0.001;

// The agreement of the models with the run: mean periods, in which only the span of a step is replayed.
struct ModelError {
  double recorded_ns = 0;
  double graph_ns = 0;  // replay of the graph
  double order_ns = 0;  // replay of the recognised schedule; NaN where there is none
};

// The intended use of a model.
enum class WhatIfUse : uint8_t {
  kAll,
  // Only other orders and Changes::stage_factor; what other changes need is not measured, so they have no effect.
  kOrders,
};

class WhatIf {
 public:
  // `graph` is that of graph_of(run, LaunchRule::kFree). Steps of at least 1.3 × the median (PipelineSums::outliers)
  // are left out of prices, which is noted in `notes`. O(cells log cells).
  static WhatIf of(const Run& run, std::shared_ptr<const StepGraph> graph, Diagnostics& notes,
                   WhatIfUse use = WhatIfUse::kAll);

  // Returns one price for each scenario. Thread-safe; the result does not depend on the number of threads. A scenario
  // that is impossible (an unknown schedule, a rank that does not exist) gets the reason. O(operations · scenarios).
  std::vector<Price> prices(std::span<const Changes> worlds) const;
  Price price(const Changes& world) const { return prices({&world, 1}).front(); }
  // The price and the step times from one replay, indexed as StepGraph::steps and scaled as Price::step_ns; NaN for
  // steps that cannot be replayed.
  struct Priced {
    Price price;
    std::vector<double> step_ns;
  };
  Priced priced(const Changes& world) const;

  struct WorldCell {
    int32_t part = kUnknown, dp = kUnknown, stage = kUnknown, chunk = kUnknown, micro_batch = kUnknown;
    uint32_t cell = kNoCell;
    CellKind kind = CellKind::kForward;
    double start_ns = 0, end_ns = 0;
  };
  // Returns cells of one step of a scenario, in time from the step's start. If the scenario keeps the order these are
  // all recorded operations, with `part` and `cell` as in StepGraph; otherwise only the pipelines' cells, with kUnknown
  // and kNoCell. Empty where it cannot be replayed. `step` is an index of StepGraph::steps; with `dp`, only cells of
  // that replica and of ranks in no replica. O(operations of the step), or O(operations) with another order.
  std::vector<WorldCell> step_cells(const Changes& world, uint32_t step, int32_t dp = kUnknown) const;

  // The order that a world runs in. Errors: those of compile_order(); kUnavailable where no order is known.
  Result<Schedule> schedule_of(const Changes& changes) const;
  Result<OrderPlan> plan_of(const Changes& changes) const;

  const StepGraph& graph() const { return *graph_; }
  const OrderModel& order() const { return order_; }
  const ModelError& error() const { return error_; }
  // OrderModel::latencies() as recorded.
  std::vector<double> latencies() const { return order_.latencies(*graph_, present_times()); }
  // The layers of each virtual stage that order changes assume; they determine which part of the end stages' cost is
  // embedding and head. By default all stages have equally many.
  void set_layers(const std::vector<int32_t>& layers) { layers_ = layer_costs(order_.stages(), layers); }
  const LayerCosts& layers() const { return layers_; }
  // Returns true when every stage of the run has operations. If not, what a rank waits for is missing, and waits look
  // like its own delays.
  bool whole() const { return whole_; }
  bool hosts_alone() const { return hosts_alone_; }               // the recording has no devices
  bool one_host() const { return one_host_; }                     // all ranks are known to be on one machine
  const std::vector<uint8_t>& counts() const { return counts_; }  // for each step: true if it is not an outlier
  bool has_stage(int32_t stage, int32_t dp) const;
  // For [step][dp · stages + stage]: sums over a worker's cells of their times and of the times of the same cells in
  // other replicas. Empty without other replicas, and where most workers have no cells. O(operations).
  struct WorkerStep {
    double own_ns = 0, others_ns = 0;
  };
  std::vector<WorkerStep> workers() const;
  // The number of operations that a scale touches, and of those in steps that count.
  struct Touched {
    int64_t all = 0, counted = 0;
  };
  Touched touched(const CellScale& scale) const;
  int32_t rank_of(size_t op) const { return ranks_[graph_->part[op]]; }

 private:
  friend class PackedModel;
  struct World;  // Changes, as rules for operations
  World world_of(const Changes& changes) const;
  bool fits_op(const CellScale& scale, size_t op) const;
  std::vector<double> order_times(const World& world, const OrderPlan& plan) const;
  void to_present_size(const OrderPlan& plan, std::vector<double>& step_ns) const;
  // Writes the operations' times in the first world of the stretch.
  void apply(const World& world, const WorldStretch& stretch) const;
  OpTimesView::Rule rule_of(const World& world) const;                   // `world` must outlive it
  OpTimesView present_times() const { return OpTimesView(launch_ns_); }  // of the scenario without changes
  void take_steps(const std::vector<int32_t>& outliers, Diagnostics& notes);
  void look_for_stages(int32_t pipeline_stages, Diagnostics& notes);
  void measure_error();
  void measure_others();
  void measure_usual();
  void measure_links(const Trace& trace);
  Price price_of(const std::vector<double>& before, const std::vector<double>& after, double held) const;

  std::shared_ptr<const StepGraph> graph_;
  OrderModel order_;
  LayerCosts layers_;
  ModelError error_;
  bool whole_ = true, hosts_alone_ = false, one_host_ = false;
  std::vector<int32_t> ranks_;        // by part
  std::vector<uint8_t> counts_;       // by step
  double gap_ns_ = 0;                 // between steps; no change that is tried moves it
  uint32_t step_of(size_t op) const;  // index into steps
  std::vector<double> launch_ns_;     // by type: maximum launch delay, for types other than compute cells
  std::vector<double> others_ns_;     // by operation: the other replicas' mean of the same cell; NaN
  std::vector<double> usual_ns_;      // the means of each rank's kinds and chunks; NaN
  std::vector<float> link_factor_;    // by link: to be at the median of its class
  // By operation: of a compute cell its place in usual_ns_, of a message its place in link_factor_, else any.
  std::vector<uint32_t> place_of_;
  std::vector<double> fair_ns_;                        // by type: mean of compute, median of communication
  std::vector<double> graph_step_ns_, order_step_ns_;  // replays of the recorded times, by step
};

// The what-if model of a run, from its graph with free launches. `notes` also gets what that graph assumes. Errors:
// those of build_step_graph().
Result<WhatIf> what_if_of(const Run& run, Diagnostics& notes);

}  // namespace stageline
