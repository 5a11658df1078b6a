// What a run's steps would take had its cells run in another order: another schedule, other chunks, more micro-batches.
//
//   step = first cell's start + replay of the order with the run's own cells, messages and delays + what came after
//          ├ as recorded ┤  ├──────────── the longest replica's ────────────┤ ├ the last cell to the step's end ┤
//
// The present schedule replayed in the same way is what other orders are compared with: its difference from the
// recorded step is the error of this model. Assumptions: docs/analyses/what-if.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/schedule.h"
#include "pipeline/layer_split.h"
#include "pipeline/rank_lists.h"
#include "pipeline/recognise.h"
#include "pipeline/step_graph.h"

namespace stageline {

// An order compiled for replays: cells in an order in which each comes after what it waits for.
struct OrderPlan {
  struct Cell {
    uint32_t slot[2];  // (stage · chunks + chunk) · micro-batches + micro-batch; of a lone action twice the same
    uint8_t kind[2];   // 0 F, 1 B, 2 I, 3 W
    uint8_t count;     // actions
    int32_t stage;
    uint32_t before;    // cell of the same rank; kNoCell
    uint32_t after[2];  // producers; kNoCell
    int32_t edge[2];    // 2 · receiving stage, + 1 backwards: a message between ranks; -1: none
  };
  Schedule schedule;  // its ranks' lists are emptied
  std::vector<Cell> cells;
  std::vector<double> held;  // by rank: most activations held at once, in those of one stage of one micro-batch
  double most_held() const;
};

// Orders of at most so many cells a pipeline are tried.
inline constexpr size_t kMostPlanCells = 2'000'000;
// Errors: those of make_schedule(); kBadInput when the order deadlocks; kLimit.
Result<OrderPlan> compile_order(std::string_view name, const ScheduleSizes& sizes);

// The run's cells by place in its recognised schedule.
class OrderModel {
 public:
  // `recognition` of this trace. Nothing is known without a recognised schedule, of jobs in pieces, or where no step is
  // whole; why_not() says which.
  static OrderModel of(const Trace& trace, const StepGraph& graph, Recognition recognition);

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

  // A cell of a replayed order, from its step's start; of an overlapped pair two.
  struct ReplayedCell {
    int32_t dp = 0, stage = 0, chunk = 0, micro_batch = 0;
    CellKind kind = CellKind::kForward;
    double start_ns = 0, end_ns = 0;
  };

  // Step times, by StepGraph::steps; NaN of steps that are not whole. `times` are those of the graph's operations;
  // `layers` says what of the ends' cost is embedding and head, which other chunks hold in another order. O(steps ·
  // replicas · cells).
  std::vector<double> step_ns(const StepGraph& graph, const OpTimes& times, const LayerCosts& layers,
                              const OrderPlan& plan) const {
    return replay(graph, times, layers, plan, kNoCell, nullptr);
  }
  // One step in full, replica by replica; empty where it is not whole.
  std::vector<ReplayedCell> step_cells(const StepGraph& graph, const OpTimes& times, const LayerCosts& layers,
                                       const OrderPlan& plan, uint32_t step) const;

 private:
  // Of `step` alone where it is one, and then its cells into `cells`.
  std::vector<double> replay(const StepGraph& graph, const OpTimes& times, const LayerCosts& layers,
                             const OrderPlan& plan, uint32_t step, std::vector<ReplayedCell>* cells) const;
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
  void collect(const RankLists& lists, const StepGraph& graph, size_t cells);
  void measure(const StepGraph& graph);
  std::vector<double> latencies(const StepGraph& graph, const OpTimes& times) const;

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
