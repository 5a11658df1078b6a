// FThenB (GPipe): every rank runs all forwards, then all backwards, both in micro-batch order.
#include "schedules/build.h"

namespace stageline {
namespace {

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"fthenb", sizes, ChunkLayout::kLoop, {}};
  RankOrder order;
  for (int32_t i = 0; i < sizes.micro_batches; ++i) push(order, CellKind::kForward, i);
  for (int32_t i = 0; i < sizes.micro_batches; ++i) push(order, CellKind::kBackward, i);
  schedule.ranks.assign(static_cast<size_t>(sizes.stages), order);
  return schedule;
}

}  // namespace

extern const ScheduleDef fthenb_schedule;
const ScheduleDef fthenb_schedule = {"fthenb", "all forwards, then all backwards (GPipe)",
                                     "Huang et al., GPipe, arXiv 1811.06965; Paddle's FThenB pass", false, make};

}  // namespace stageline
