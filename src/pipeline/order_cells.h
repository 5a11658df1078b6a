// A replayed order as cells, for those who draw it.
#pragma once

#include "pipeline/other_order.h"

namespace stageline {

// The plan's cells of one replica, by rank and place in its order; `start` and `end` by cell of the plan.
// Tensor-parallel peers do the same: the first speaks for its replica.
void add_order_cells(const OrderPlan& plan, int32_t dp, const std::vector<double>& start,
                     const std::vector<double>& end, std::vector<OrderModel::ReplayedCell>& out);

}  // namespace stageline
