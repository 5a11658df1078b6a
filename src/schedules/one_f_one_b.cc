// 1F1B: p − r forwards to warm up, then one backward and one forward in turn. Megatron writes the
// warm-up as p − r − 1 followed by (F, B) pairs; the resulting list is the same.
#include "schedules/build.h"

namespace stageline::one_f_one_b {

int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) { return std::min(sizes.micro_batches, sizes.stages - rank); }
int64_t activations(const ScheduleSizes& sizes, int32_t rank) { return warm_up(sizes, rank); }

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"1f1b", sizes, ChunkLayout::kLoop};
  for (int32_t r = 0; r < sizes.stages; ++r)
    schedule.ranks.push_back(warm_alternate(warm_up(sizes, r), sizes.micro_batches));
  return schedule;
}

}  // namespace stageline::one_f_one_b
