// A replayed order as cells, for drawing.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/what_if/order_plan.h"

namespace stageline {

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
