// Estimates a run's steps if its cells ran in another order: another schedule, other chunks, more micro-batches.
//
//   step = first cell's start + replay of the order with the run's own cells, messages and delays + what came after
//          ├ as recorded ┤  ├──────────── the longest replica's ────────────┤ ├ the last cell to the step's end ┤
//
// Other orders are compared with the present schedule replayed in the same way; its difference from the recorded step
// is the error of this model. Assumptions: docs/analyses/what-if.md.
#pragma once

#include "diagnosis/what_if/layer_split.h"
#include "diagnosis/what_if/order_plan.h"
#include "pipeline/order/recognise.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

// Durations of operations in a scenario: those of the graph with shorter launch delays, or computed by a rule on
// request. Storing them for a large run would need a quarter of the memory of its graph. References must outlive it.
class OpTimesView {
 public:
  struct OpTime {
    double dur_ns = 0, delay_ns = 0;
  };
  using Rule = std::function<OpTime(uint32_t op)>;  // from several threads
  explicit OpTimesView(const Rule& rule) : rule_(&rule) {}
  // `max_ns`: by type, for types other than compute.
  explicit OpTimesView(const std::vector<double>& max_ns) : launch_ns_(max_ns) {}
  OpTime of(const StepGraph& graph, uint32_t op) const {
    if (rule_) return (*rule_)(op);
    const double late = graph.delay_ns[op];
    return {graph.dur_ns[op], is_compute(graph.kind[op]) ? late : std::min(late, launch_ns_[graph.type[op]])};
  }

 private:
  const Rule* rule_ = nullptr;
  std::span<const double> launch_ns_;
};

// The run's cells at their places in its recognised schedule.
class OrderModel {
 public:
  // `recognition` is of this trace. Nothing is known without a recognised schedule, where jobs are cut into pieces, or
  // where no step is whole; why_not() says which. `lists`: rank_lists() by the recognition's rule, if the caller made
  // the lists already.
  static OrderModel of(const Trace& trace, const StepGraph& graph, Recognition recognition,
                       const RankLists* lists = nullptr);

  bool known() const { return why_not_.empty(); }
  const Text& why_not() const { return why_not_; }
  const Recognition& recognition() const { return recognition_; }
  const ScheduleSizes& sizes() const { return sizes_; }
  ChunkLayout layout() const { return layout_; }
  // The order that ran: the recognised schedule's or, where lists leave it, the most frequent list of every stage.
  const OrderPlan& present() const { return present_; }
  bool leaves_schedule() const { return left_; }
  // Lower medians over replicas of the means over steps and micro-batches.
  const StageCosts& stages() const { return stages_; }
  // Returns the same costs for each step alone, of the steps that are whole. O(cells).
  std::vector<std::vector<DirectionCost>> step_costs(const StepGraph& graph) const;
  double weight_share() const { return weight_share_; }  // W ÷ (I + W) where it was measured, else 0.5
  bool weight_measured() const { return weight_measured_; }
  double overlap_ratio() const { return overlap_ratio_; }  // F&B ÷ (F + B) where it was measured, else 1
  int32_t virtual_stage_of(int32_t stage, int32_t chunk) const;

  // Step times, indexed as StepGraph::steps; NaN for steps that are not whole. `times` belong to the graph's
  // operations. `layers` says which part of the end stages' cost is embedding and head, which other chunks hold in
  // another order. O(steps · replicas · cells).
  std::vector<double> step_ns(const StepGraph& graph, const OpTimesView& times, const LayerCosts& layers,
                              const OrderPlan& plan) const {
    const OrderPlan* one = &plan;
    return std::move(replay(graph, times, layers, {&one, 1}, kNoCell, nullptr).front());
  }
  // Returns the same for several orders, in one pass.
  std::vector<std::vector<double>> steps_ns(const StepGraph& graph, const OpTimesView& times, const LayerCosts& layers,
                                            std::span<const OrderPlan* const> plans) const {
    return replay(graph, times, layers, plans, kNoCell, nullptr);
  }
  // All cells of one step, replica by replica; empty where the step is not whole.
  std::vector<OrderCell> step_cells(const StepGraph& graph, const OpTimesView& times, const LayerCosts& layers,
                                    const OrderPlan& plan, uint32_t step) const;

  // The time of a message over each link: of each replica, 2 · receiving stage, + 1 if backwards.
  std::vector<double> latencies(const StepGraph& graph, const OpTimesView& times) const;

 private:
  friend class PackedModel;
  // Step times for each plan. If `step` is not kNoCell, only that step is replayed and its cells are added to `cells`.
  std::vector<std::vector<double>> replay(const StepGraph& graph, const OpTimesView& times, const LayerCosts& layers,
                                          std::span<const OrderPlan* const> plans, uint32_t step,
                                          std::vector<OrderCell>* cells) const;
  struct Pipeline {     // one step of one replica (and tensor-parallel index)
    uint32_t step = 0;  // index into StepGraph::steps
    int32_t dp = 0;
    size_t slots = 0;  // index of its first slot
    double head_ns = 0;
  };
  struct Slot {
    uint32_t op[kDirections] = {kNoCell, kNoCell, kNoCell};  // F, B or I, W
    bool fused_with[2] = {false, false};  // whether its F, and its B or I, is half of an overlapped pair
  };
  using OwnTimes = std::vector<std::array<double, kDirections>>;  // for each slot of a pipeline
  // Costs of a plan's slots, from those of the run's slots.
  class PlanCosts;
  void collect(const RankLists& lists, const StepGraph& graph, size_t cells);
  std::optional<std::vector<size_t>> fill_slots(const RankLists& lists, size_t first, size_t last,
                                                const std::vector<uint32_t>& op_of);
  bool add_pipeline(Pipeline pipeline, const StepGraph& graph);
  void measure_tails(const StepGraph& graph);
  size_t slots_of_pipeline() const { return static_cast<size_t>(sizes_.stages) * sizes_.chunks * sizes_.micro_batches; }
  void measure(const StepGraph& graph);
  // Sums of one step or, with kNoCell, of all: replica by replica, for each virtual stage.
  struct CostSum {
    DirectionCost ns = {};
    std::array<int64_t, kDirections> count = {};
  };
  using ReplicaSums = std::map<int32_t, std::vector<CostSum>>;  // key: dp
  std::vector<DirectionCost> middle_costs(const ReplicaSums& replicas) const;
  void take_times(const StepGraph& graph, const OpTimesView& times, const Pipeline& pipeline, OwnTimes& own) const;

  Text why_not_;
  Recognition recognition_;
  ScheduleSizes sizes_;
  ChunkLayout layout_ = ChunkLayout::kLoop;
  OrderPlan present_;
  bool left_ = false;
  std::vector<Pipeline> pipelines_;  // sorted by step
  std::vector<Slot> slots_;
  std::vector<double> tail_ns_;  // for each step
  StageCosts stages_;
  double weight_share_ = 0.5, overlap_ratio_ = 1;
  bool weight_measured_ = false;
};

}  // namespace stageline
