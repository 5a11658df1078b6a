// Small helpers that the schedule files share.
#pragma once

#include "model/schedule.h"

namespace stageline {

inline void push(RankOrder& order, CellKind kind, int32_t micro_batch, int32_t chunk = 0) {
  order.push_back({{{kind, micro_batch, chunk}}});
}

// Warm-up of `warm` forwards, then (B, F) until the forwards run out, then the remaining B.
RankOrder warm_alternate(int32_t warm, int32_t micro_batches);

}  // namespace stageline
