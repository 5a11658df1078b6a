// ZB-H1 and ZB-H2 of the zero-bubble paper: 1F1B and Eager 1F1B with the backward split. The input gradient I
// takes B's place, because the next stage waits for it; the weight gradient W waits for a bubble. Rank r owes r
// (H1) or 2r (H2) of them until the end, where the others still work.
#include "schedules/build.h"

namespace stageline {
namespace zb_h1 {

int32_t warm_h1(const ScheduleSizes& sizes, int32_t rank) { return std::min(sizes.micro_batches, sizes.stages - rank); }
int32_t warm_h2(const ScheduleSizes& sizes, int32_t rank) {
  return std::min(sizes.micro_batches, 2 * (sizes.stages - rank) - 1);
}

Result<Schedule> make_h1(const ScheduleSizes& sizes) {
  Schedule schedule{"zb-h1", sizes, ChunkLayout::kLoop};
  for (int32_t r = 0; r < sizes.stages; ++r)
    schedule.ranks.push_back(warm_alternate_split(warm_h1(sizes, r), sizes.micro_batches, r));
  return schedule;
}
Result<Schedule> make_h2(const ScheduleSizes& sizes) {
  Schedule schedule{"zb-h2", sizes, ChunkLayout::kLoop};
  for (int32_t r = 0; r < sizes.stages; ++r)
    schedule.ranks.push_back(warm_alternate_split(warm_h2(sizes, r), sizes.micro_batches, 2 * r));
  return schedule;
}

double bubble_h1_ns(const ScheduleSizes& sizes, const UnitCosts& c) {
  return (sizes.stages - 1) * static_cast<double>(c.forward_ns + std::max<int64_t>(0, c.input_ns - c.weight_ns));
}
double bubble_h2_ns(const ScheduleSizes& sizes, const UnitCosts& c) {
  return (sizes.stages - 1) * static_cast<double>(std::max<int64_t>(0, c.forward_ns + c.input_ns - 2 * c.weight_ns));
}
// Activations are held until W: those of the warm-up, and those whose W is still owed.
int64_t activations_h1(const ScheduleSizes& sizes, int32_t) { return std::min(sizes.micro_batches, sizes.stages); }
int64_t activations_h2(const ScheduleSizes& sizes, int32_t) {
  return std::min(sizes.micro_batches, 2 * sizes.stages - 1);
}

}  // namespace zb_h1

extern const ScheduleDef zb_h1_schedule = {
    .name = "zb-h1",
    .summary = "zero-bubble ZB-H1: 1F1B with weight gradients moved into the bubbles",
    .source = "Qi et al., arXiv 2401.10241",
    .make = zb_h1::make_h1,
    .warm_up = zb_h1::warm_h1,
    .bubble_text = "(p−1)(F+I−W), never below (p−1)F; exact for W ≤ F or I ≤ F and m ≥ p",
    .bubble_ns = zb_h1::bubble_h1_ns,
    .bubble_min_micro_batches = filled_once,
    .activations_text = "min(m, p)",
    .activations = zb_h1::activations_h1,
};

extern const ScheduleDef zb_h2_schedule = {
    .name = "zb-h2",
    .summary = "zero-bubble ZB-H2: no inner bubble at equal costs, for nearly twice the activations",
    .source = "Qi et al., arXiv 2401.10241 (the hand-crafted pattern)",
    .make = zb_h1::make_h2,
    .warm_up = zb_h1::warm_h2,
    .bubble_text = "max(0, (p−1)(F+I−2W)), exact for F = I = W and m ≥ 2p−1",
    .bubble_ns = zb_h1::bubble_h2_ns,
    .bubble_is_inner = true,
    .bubble_min_micro_batches = filled_twice,
    .activations_text = "min(m, 2p−1)",
    .activations = zb_h1::activations_h2,
};

}  // namespace stageline
