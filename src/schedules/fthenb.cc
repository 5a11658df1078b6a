// FThenB (GPipe): every rank runs all forwards, then all backwards, both in micro-batch order.
#include "schedules/build.h"

namespace stageline::fthenb {

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"fthenb", sizes, ChunkLayout::kLoop};
  schedule.ranks.assign(sizes.stages, warm_alternate(sizes.micro_batches, sizes.micro_batches));
  return schedule;
}

int32_t warm_up(const ScheduleSizes& sizes, int32_t) { return sizes.micro_batches; }
int64_t activations(const ScheduleSizes& sizes, int32_t) { return sizes.micro_batches; }

}  // namespace stageline::fthenb
