// 1F1B: p − r forwards to warm up, then one backward and one forward in turn. Megatron writes the
// warm-up as p − r − 1 followed by (F, B) pairs; the resulting list is the same.
#include "schedules/build.h"

namespace stageline {
namespace one_f_one_b {

int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) { return std::min(sizes.micro_batches, sizes.stages - rank); }
int64_t activations(const ScheduleSizes& sizes, int32_t rank) { return warm_up(sizes, rank); }

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"1f1b", sizes, ChunkLayout::kLoop};
  for (int32_t r = 0; r < sizes.stages; ++r)
    schedule.ranks.push_back(warm_alternate(warm_up(sizes, r), sizes.micro_batches));
  return schedule;
}

}  // namespace one_f_one_b

extern const ScheduleDef one_f_one_b_schedule = {
    .name = "1f1b",
    .summary = "one forward, one backward in turn",
    .source = "Narayanan et al., arXiv 2104.04473; Paddle's 1F1B pass",
    .make = one_f_one_b::make,
    .warm_up = one_f_one_b::warm_up,
    .bubble_text = kClassicBubble,
    .bubble_ns = classic_bubble_ns,
    .activations_text = "min(m, p−r)",
    .activations = one_f_one_b::activations,
};

}  // namespace stageline
