#include "model/schedule.h"

namespace stageline {

int32_t virtual_stage(const Schedule& schedule, int32_t rank, int32_t chunk) {
  const int32_t p = schedule.sizes.stages;
  if (schedule.layout == ChunkLayout::kLoop || chunk % 2 == 0) return chunk * p + rank;
  return chunk * p + (p - 1 - rank);
}

}  // namespace stageline
