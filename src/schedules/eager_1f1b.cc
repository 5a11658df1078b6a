// Eager 1F1B: 1F1B with a warm-up of 2(p − r) − 1 forwards. It holds more activations and hides more of the messages'
// latency.
#include "schedules/build.h"

namespace stageline::eager_1f1b {

int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) {
  return std::min(sizes.micro_batches, 2 * (sizes.stages - rank) - 1);
}
int64_t activations(const ScheduleSizes& sizes, int32_t rank) { return warm_up(sizes, rank); }

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"eager-1f1b", sizes, ChunkLayout::kLoop};
  for (int32_t r = 0; r < sizes.stages; ++r)
    schedule.ranks.push_back(warm_alternate(warm_up(sizes, r), sizes.micro_batches));
  return schedule;
}

}  // namespace stageline::eager_1f1b
