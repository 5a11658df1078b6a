// A plan: an order as it is replayed, with what each cell is, waits for and sends. other_order.h replays it.
#pragma once

#include "model/schedule.h"
#include "pipeline/order/rank_lists.h"
#include "pipeline/replay/graph_ops.h"

namespace stageline {

// An order compiled for replays: each cell comes after the cells that it waits for.
struct OrderPlan {
  struct Cell {
    // (stage · chunks + chunk) · micro-batches + micro-batch; twice the same where there is one action.
    uint32_t slot[2];
    uint8_t kind[2];  // 0 F, 1 B, 2 I, 3 W
    uint8_t count;    // number of actions
    int32_t stage;
    uint32_t before;    // the cell before it on the same rank; kNoCell: none
    uint32_t after[2];  // producers; kNoCell: none
    int32_t edge[2];    // 2 · receiving stage, + 1 if backwards, of a message between ranks; -1: none
  };
  Schedule schedule;  // without its ranks' lists
  std::vector<Cell> cells;
  // For each rank the most activations held at once, in units of one stage's for one micro-batch.
  std::vector<double> held;
  double max_held() const { return held.empty() ? 0 : *std::max_element(held.begin(), held.end()); }
};

// Only orders of at most this many cells per pipeline are tried.
inline constexpr size_t kMaxPlanCells = 2'000'000;
// Errors: those of make_schedule(); kBadInput when the order deadlocks; kLimit beyond kMaxPlanCells.
Result<OrderPlan> compile_schedule(Schedule schedule);
// The lists of a schedule that is small enough to be replayed.
Result<Schedule> order_of(std::string_view name, const ScheduleSizes& sizes);
Result<OrderPlan> compile_order(std::string_view name, const ScheduleSizes& sizes);

// The schedule with the most frequent list of every stage; nothing where a stage has no whole list, or where the lists
// cannot run together.
std::optional<OrderPlan> compile_as_it_ran(const RankLists& lists, std::string_view name, const ScheduleSizes& sizes);

// A cell of a replayed order, in time from its step's start; an overlapped pair is two cells.
struct OrderCell {
  int32_t dp = 0, stage = 0, chunk = 0, micro_batch = 0;
  CellKind kind = CellKind::kForward;
  double start_ns = 0, end_ns = 0;
};

// Adds the plan's cells of one replica, by rank and place in its order; `start` and `end` are indexed by cell of the
// plan. Tensor-parallel peers do the same work, so the first stands for its replica.
void add_order_cells(const OrderPlan& plan, int32_t dp, const std::vector<double>& start,
                     const std::vector<double>& end, std::vector<OrderCell>& out);

}  // namespace stageline
