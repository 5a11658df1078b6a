#include "diagnosis/what_if/order_cells.h"

namespace stageline {

void add_order_cells(const OrderPlan& plan, int32_t dp, const std::vector<double>& start,
                     const std::vector<double>& end, std::vector<OrderCell>& out) {
  constexpr CellKind kKinds[] = {CellKind::kForward, CellKind::kBackward, CellKind::kInputGrad, CellKind::kWeightGrad};
  const uint32_t m = plan.schedule.sizes.micro_batches;
  const uint32_t v = plan.schedule.sizes.chunks;
  for (size_t c = 0; c < plan.cells.size(); ++c)
    for (size_t k = 0; k < plan.cells[c].count; ++k) {
      const uint32_t slot = plan.cells[c].slot[k];
      out.push_back({dp, plan.cells[c].stage, static_cast<int32_t>(slot / m % v), static_cast<int32_t>(slot % m),
                     kKinds[plan.cells[c].kind[k]], start[c], end[c]});
    }
}

}  // namespace stageline
