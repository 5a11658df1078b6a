// FThenB (GPipe): every rank runs all forwards, then all backwards, both in micro-batch order.
#include "schedules/build.h"

namespace stageline {
namespace fthenb {

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"fthenb", sizes, ChunkLayout::kLoop};
  schedule.ranks.assign(sizes.stages, warm_alternate(sizes.micro_batches, sizes.micro_batches));
  return schedule;
}

int32_t warm_up(const ScheduleSizes& sizes, int32_t) { return sizes.micro_batches; }
int64_t activations(const ScheduleSizes& sizes, int32_t) { return sizes.micro_batches; }

}  // namespace fthenb

extern const ScheduleDef fthenb_schedule = {
    .name = "fthenb",
    .summary = "all forwards, then all backwards (GPipe)",
    .source = "Huang et al., GPipe, arXiv 1811.06965; Paddle's FThenB pass",
    .make = fthenb::make,
    .warm_up = fthenb::warm_up,
    .bubble_text = kClassicBubble,
    .bubble_ns = classic_bubble_ns,
    .activations_text = "m",
    .activations = fthenb::activations,
};

}  // namespace stageline
