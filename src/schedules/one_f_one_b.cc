// 1F1B: p − r forwards to warm up, then one backward and one forward in turn. Megatron writes the
// warm-up as p − r − 1 followed by (F, B) pairs; the resulting list is the same.
#include "schedules/build.h"

namespace stageline {
namespace {

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"1f1b", sizes, ChunkLayout::kLoop, {}};
  for (int32_t r = 0; r < sizes.stages; ++r)
    schedule.ranks.push_back(warm_alternate(sizes.stages - r, sizes.micro_batches));
  return schedule;
}

}  // namespace

extern const ScheduleDef one_f_one_b_schedule;
const ScheduleDef one_f_one_b_schedule = {"1f1b", "one forward, one backward in turn",
                                          "Narayanan et al., arXiv 2104.04473; Paddle's 1F1B pass", false, make};

}  // namespace stageline
