// ZB-H1 as Paddle's zero-bubble pass lays it out, which differs from the paper's. Rank r runs F × (p − r), then r × (I,
// F), then (m − p) × (B, F), then (p − r − 1) × B. The last backward runs as I, W (on rank 0 as B), and the r owed W
// follow. The bubble is (p − 2)F + (p − 1)I instead of the paper's (p − 1)(F + I − W).
#include "schedules/build.h"

namespace stageline::zb_h1_paddle {

Result<Schedule> make(const ScheduleSizes& sizes) {
  const int32_t p = sizes.stages, m = sizes.micro_batches;
  if (m < p) return sizes_error("zb-h1-paddle", words("order.needs.a_stage", Args().set("stages", int64_t{p})), m);
  Schedule schedule{"zb-h1-paddle", sizes, ChunkLayout::kLoop};
  for (int32_t r = 0; r < p; ++r) {
    RankOrder order;
    int32_t f = 0, b = 0;
    for (int32_t i = 0; i < p - r; ++i) push(order, CellKind::kForward, f++);
    for (int32_t i = 0; i < r; ++i) {
      push(order, CellKind::kInputGrad, b++);
      push(order, CellKind::kForward, f++);
    }
    for (int32_t i = 0; i < m - p; ++i) {
      push(order, CellKind::kBackward, b++);
      push(order, CellKind::kForward, f++);
    }
    for (int32_t i = 0; i < p - r - 1; ++i) push(order, CellKind::kBackward, b++);
    if (r > 0) {
      push(order, CellKind::kInputGrad, b);
      push(order, CellKind::kWeightGrad, b);
    } else {
      push(order, CellKind::kBackward, b);
    }
    for (int32_t i = 0; i < r; ++i) push(order, CellKind::kWeightGrad, i);
    schedule.ranks.push_back(std::move(order));
  }
  return schedule;
}

int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) { return sizes.stages - rank; }
double bubble_ns(const ScheduleSizes& sizes, const UnitCosts& c) {
  return std::max(0, sizes.stages - 2) * static_cast<double>(c.forward_ns) +
         (sizes.stages - 1) * static_cast<double>(c.input_ns);
}
int64_t activations(const ScheduleSizes& sizes, int32_t) { return sizes.stages; }

}  // namespace stageline::zb_h1_paddle
