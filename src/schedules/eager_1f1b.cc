// Eager 1F1B: as 1F1B with a warm-up of 2(p − r) − 1 forwards. More activations, less exposed latency.
#include <string>

#include "schedules/build.h"

namespace stageline {
namespace {

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"eager-1f1b", sizes, ChunkLayout::kLoop, {}};
  for (int32_t r = 0; r < sizes.stages; ++r)
    schedule.ranks.push_back(warm_alternate(2 * (sizes.stages - r) - 1, sizes.micro_batches));
  return schedule;
}

}  // namespace

extern const ScheduleDef eager_1f1b_schedule;
const ScheduleDef eager_1f1b_schedule = {"eager-1f1b", "1F1B with a longer warm-up that hides message latency",
                                         "Paddle's Eager1F1B pass", false, make};

}  // namespace stageline
