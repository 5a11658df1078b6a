// DualPipeV: DualPipe cut in half. p ranks hold two chunks each in a V; what DualPipe does between the two
// directions happens here between the two chunks. MindSpeed's implementation differs in the cool-down.
#include "schedules/build.h"

namespace stageline::dualpipe_v {

// MindSpeed's overlapping loop may run no time on the first rank, so one micro-batch fewer is enough for it.
Result<Schedule> make_with(const char* name, const ScheduleSizes& sizes, bool mindspeed) {
  const int64_t min = std::max<int64_t>(2, 2 * int64_t{sizes.stages} - mindspeed);
  if (sizes.micro_batches < min)
    return sizes_error(
        name,
        words(mindspeed ? "order.needs.two_a_stage_but_one" : "order.needs.two_a_stage", Args().set("count", min)),
        sizes.micro_batches);
  Schedule schedule{name, sizes, ChunkLayout::kV};
  for (int32_t r = 0; r < sizes.stages; ++r) {
    DualPipeRank rank(sizes.stages, sizes.micro_batches, r);
    schedule.ranks.push_back(mindspeed ? rank.mindspeed(sizes.dw_detach) : rank.dualpipe());
  }
  return schedule;
}

Result<Schedule> make(const ScheduleSizes& sizes) { return make_with("dualpipe-v", sizes, false); }
int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) { return dualpipe_warm_up(sizes.stages, rank); }
double bubble_ns(const ScheduleSizes& sizes, const UnitCosts& costs) { return dualpipe_bubble_ns(sizes.stages, costs); }
int64_t activations(const ScheduleSizes& sizes, int32_t) { return 2 * int64_t{sizes.stages} + 1; }

}  // namespace stageline::dualpipe_v

namespace stageline::dualpipe_v_mindspeed {

Result<Schedule> make(const ScheduleSizes& sizes) { return dualpipe_v::make_with("dualpipe-v-mindspeed", sizes, true); }
double bubble_ns(const ScheduleSizes& sizes, const UnitCosts& c) {
  if (sizes.dw_detach) return dualpipe_v::bubble_ns(sizes, c);
  return (sizes.stages - 1) * static_cast<double>(c.overlapped_ns + c.backward_ns - c.weight_ns);
}

}  // namespace stageline::dualpipe_v_mindspeed
