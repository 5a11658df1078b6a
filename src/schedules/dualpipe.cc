// DualPipe: micro-batches enter the pipeline at both ends, and every rank holds the parameters of two stages. The
// first half of the micro-batches (chunk 0) goes from rank 0 to rank p − 1, the second half (chunk 1) the other way.
// Rank r and rank p − 1 − r do the same with the directions swapped, as one rank of a V of p/2.
#include "schedules/build.h"

namespace stageline::dualpipe {

int32_t place_of(const ScheduleSizes& sizes, int32_t rank) { return std::min(rank, sizes.stages - 1 - rank); }

Result<Schedule> make(const ScheduleSizes& sizes) {
  const int32_t p = sizes.stages, half = sizes.micro_batches / 2;
  if (p % 2 != 0) return sizes_error("dualpipe", words("order.needs.even_stages"), p);
  if (sizes.micro_batches % 2 != 0)
    return sizes_error("dualpipe", words("order.needs.even_micro_batches"), sizes.micro_batches);
  if (sizes.micro_batches < 2 * p)
    return sizes_error("dualpipe", words("order.needs.two_a_stage", Args().set("count", int64_t{2 * p})),
                       sizes.micro_batches);
  Schedule schedule{"dualpipe", sizes, ChunkLayout::kBidirectional};
  for (int32_t r = 0; r < p; ++r) {
    const int32_t swap = r >= p / 2 ? 1 : 0;
    const auto fixed = [&](const Action& a) {
      const int32_t direction = a.chunk ^ swap;
      return Action{a.kind, a.micro_batch + half * direction, direction};
    };
    RankOrder order = DualPipeRank(p / 2, half, place_of(sizes, r)).dualpipe();
    for (ScheduleCell& cell : order) {
      const auto actions = cell.actions();
      cell = cell.overlapped() ? ScheduleCell(fixed(actions[0]), fixed(actions[1])) : ScheduleCell(fixed(actions[0]));
    }
    schedule.ranks.push_back(std::move(order));
  }
  return schedule;
}

int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) {
  return dualpipe_warm_up(sizes.stages / 2, place_of(sizes, rank));
}
double bubble_ns(const ScheduleSizes& sizes, const UnitCosts& costs) {
  return dualpipe_bubble_ns(sizes.stages / 2, costs);
}
int64_t activations(const ScheduleSizes& sizes, int32_t) { return sizes.stages + 1; }

}  // namespace stageline::dualpipe
