// ZB-H1 and ZB-H2 of the zero-bubble paper: 1F1B and Eager 1F1B with the backward split. The input gradient I
// takes B's place, because the next stage waits for it; the weight gradient W waits for a bubble. Rank r owes r
// (H1) or 2r (H2) of them until the end, where the others still work.
#include "schedules/build.h"

namespace stageline::zb_h1 {

int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) { return std::min(sizes.micro_batches, sizes.stages - rank); }

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"zb-h1", sizes, ChunkLayout::kLoop};
  for (int32_t r = 0; r < sizes.stages; ++r)
    schedule.ranks.push_back(warm_alternate_split(warm_up(sizes, r), sizes.micro_batches, r));
  return schedule;
}

double bubble_ns(const ScheduleSizes& sizes, const UnitCosts& c) {
  return (sizes.stages - 1) * static_cast<double>(c.forward_ns + std::max<int64_t>(0, c.input_ns - c.weight_ns));
}
// Activations are held until W: those of the warm-up, and those whose W is still owed.
int64_t activations(const ScheduleSizes& sizes, int32_t) { return std::min(sizes.micro_batches, sizes.stages); }

}  // namespace stageline::zb_h1

namespace stageline::zb_h2 {

int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) {
  return std::min(sizes.micro_batches, 2 * (sizes.stages - rank) - 1);
}

Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{"zb-h2", sizes, ChunkLayout::kLoop};
  for (int32_t r = 0; r < sizes.stages; ++r)
    schedule.ranks.push_back(warm_alternate_split(warm_up(sizes, r), sizes.micro_batches, 2 * r));
  return schedule;
}

double bubble_ns(const ScheduleSizes& sizes, const UnitCosts& c) {
  return (sizes.stages - 1) * static_cast<double>(std::max<int64_t>(0, c.forward_ns + c.input_ns - 2 * c.weight_ns));
}
int64_t activations(const ScheduleSizes& sizes, int32_t) { return std::min(sizes.micro_batches, 2 * sizes.stages - 1); }

}  // namespace stageline::zb_h2
