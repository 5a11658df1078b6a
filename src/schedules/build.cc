#include "schedules/build.h"

#include <algorithm>

namespace stageline {

RankOrder warm_alternate(int32_t warm, int32_t micro_batches) {
  RankOrder order;
  warm = std::min(warm, micro_batches);
  for (int32_t i = 0; i < warm; ++i) push(order, CellKind::kForward, i);
  for (int32_t i = 0; i < micro_batches - warm; ++i) {
    push(order, CellKind::kBackward, i);
    push(order, CellKind::kForward, warm + i);
  }
  for (int32_t i = micro_batches - warm; i < micro_batches; ++i) push(order, CellKind::kBackward, i);
  return order;
}

}  // namespace stageline
