// What a run's steps would take had its cells run in another order: another schedule, other chunks, more micro-batches.
//
//   step = first cell's start + replay of the order with the run's own cells, messages and delays + what came after
//          ├ as recorded ┤  ├──────────── the longest replica's ────────────┤ ├ the last cell to the step's end ┤
//
// The present schedule replayed in the same way is what other orders are compared with: its difference from the
// recorded step is the error of this model. Assumptions: docs/analyses/what-if.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "diagnosis/what_if/order_cells.h"
#include "diagnosis/what_if/order_plan.h"
#include "model/schedule.h"
#include "pipeline/order/rank_lists.h"
#include "pipeline/order/recognise.h"
#include "pipeline/replay/step_graph.h"
#include "plan/layer_split.h"

namespace stageline {

// Orders of at most so many cells a pipeline are tried.
inline constexpr size_t kMostPlanCells = 2'000'000;
// Errors: those of make_schedule(); kBadInput when the order deadlocks; kLimit.
Result<OrderPlan> compile_order(std::string_view name, const ScheduleSizes& sizes);

// What operations take in a world: all of them, or the graph's own with less launch delay. References must outlive it.
struct OpTimesView {
  OpTimesView(const OpTimes& times) : dur_ns(times.dur_ns), delay_ns(times.delay_ns) {}  // NOLINT: the same times
  OpTimesView(const StepGraph& graph, const std::vector<double>& most_ns)
      : dur_ns(graph.dur_ns), delay_ns(graph.delay_ns), launch_ns(most_ns) {}
  std::span<const double> dur_ns, delay_ns;  // by operation
  std::span<const double> launch_ns;         // by type, the most of what is no compute; empty: as it is
  double delay(const StepGraph& graph, uint32_t op) const {
    const bool as_it_is = launch_ns.empty() || is_compute(graph.kind[op]);
    return as_it_is ? delay_ns[op] : std::min(delay_ns[op], launch_ns[graph.type[op]]);
  }
};

// The run's cells by place in its recognised schedule.
class OrderModel {
 public:
  // `recognition` of this trace. Nothing is known without a recognised schedule, of jobs in pieces, or where no step is
  // whole; why_not() says which. `lists`: rank_lists() by the recognition's rule, where they are at hand.
  static OrderModel of(const Trace& trace, const StepGraph& graph, Recognition recognition,
                       const RankLists* lists = nullptr);

  bool known() const { return why_not_.empty(); }
  const std::string& why_not() const { return why_not_; }
  const Recognition& recognition() const { return recognition_; }
  const ScheduleSizes& sizes() const { return sizes_; }
  ChunkLayout layout() const { return layout_; }
  // The order that ran: the recognised schedule's, or, where lists leave it, what most lists of every stage were.
  const OrderPlan& present() const { return present_; }
  bool leaves_schedule() const { return left_; }
  const StageCosts& stages() const {
    return stages_;
  }  // lower medians over replicas of means over steps and micro-batches
  double weight_share() const { return weight_share_; }  // W ÷ (I + W), measured; else 0.5
  bool weight_measured() const { return weight_measured_; }
  double overlap_ratio() const { return overlap_ratio_; }  // F&B ÷ (F + B), measured; else 1
  int32_t virtual_stage_of(int32_t stage, int32_t chunk) const;

  // Step times, by StepGraph::steps; NaN of steps that are not whole. `times` are those of the graph's operations;
  // `layers` says what of the ends' cost is embedding and head, which other chunks hold in another order. O(steps ·
  // replicas · cells).
  std::vector<double> step_ns(const StepGraph& graph, const OpTimesView& times, const LayerCosts& layers,
                              const OrderPlan& plan) const {
    const OrderPlan* one = &plan;
    return std::move(replay(graph, times, layers, {&one, 1}, kNoCell, nullptr).front());
  }
  // Of several orders in one pass.
  std::vector<std::vector<double>> steps_ns(const StepGraph& graph, const OpTimesView& times, const LayerCosts& layers,
                                            std::span<const OrderPlan* const> plans) const {
    return replay(graph, times, layers, plans, kNoCell, nullptr);
  }
  // One step in full, replica by replica; empty where it is not whole.
  std::vector<OrderCell> step_cells(const StepGraph& graph, const OpTimesView& times, const LayerCosts& layers,
                                    const OrderPlan& plan, uint32_t step) const;

 private:
  friend class PackedModel;
  // Of `step` alone where it is one, and then its cells into `cells`. By plan.
  std::vector<std::vector<double>> replay(const StepGraph& graph, const OpTimesView& times, const LayerCosts& layers,
                                          std::span<const OrderPlan* const> plans, uint32_t step,
                                          std::vector<OrderCell>* cells) const;
  struct Pipeline {     // one step of one replica (and tensor-parallel index)
    uint32_t step = 0;  // index into StepGraph::steps
    int32_t dp = 0;
    size_t slots = 0;  // first of its slots
    double head_ns = 0;
  };
  struct Slot {
    uint32_t op[kDirections] = {kNoCell, kNoCell, kNoCell};  // F, B or I, W
    bool fused_with[2] = {false, false};                     // its F, its B or I is half of an overlapped pair
  };
  using OwnTimes = std::vector<std::array<double, kDirections>>;  // by slot of a pipeline
  // A plan's costs by its own slots, from the run's cells by theirs.
  class PlanCosts;
  void collect(const RankLists& lists, const StepGraph& graph, size_t cells);
  void measure(const StepGraph& graph);
  std::vector<double> latencies(const StepGraph& graph, const OpTimesView& times) const;
  void take_times(const StepGraph& graph, const OpTimesView& times, const Pipeline& pipeline, OwnTimes& own) const;

  std::string why_not_;
  Recognition recognition_;
  ScheduleSizes sizes_;
  ChunkLayout layout_ = ChunkLayout::kLoop;
  OrderPlan present_;
  bool left_ = false;
  std::vector<Pipeline> pipelines_;  // by step
  std::vector<Slot> slots_;
  std::vector<double> tail_ns_;  // by step
  StageCosts stages_;
  double weight_share_ = 0.5, overlap_ratio_ = 1;
  bool weight_measured_ = false;
};

}  // namespace stageline
