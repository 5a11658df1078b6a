// VPP (interleaved 1F1B): micro-batches go in groups of g (p unless told otherwise); inside a group the chunks are
// walked one after another, which gives the table T[k] = (micro-batch, chunk). The backward uses the same table with
// the chunks mirrored. Rank r warms up with 2(p − 1 − r) + (v − 1)g forwards, then alternates F and B, then drains.
//
// Megatron warms up with one forward more when it overlaps a layer's expert-parallel messages with another micro-batch.
// Then the F and the B of a steady pair are independent and can share one cell. Its table lists them one after the
// other, and so does this one; the saving of the overlap is a question of costs, not of order.
#include "schedules/build.h"

namespace stageline::vpp {

int32_t group_of(const ScheduleSizes& sizes) { return sizes.group > 0 ? sizes.group : sizes.stages; }

// `extra`: by how many forwards Megatron's overlap lengthens the warm-up.
int32_t warm_of(const ScheduleSizes& sizes, int32_t rank, int32_t extra) {
  const int64_t total = int64_t{sizes.micro_batches} * sizes.chunks;
  const int64_t warm = 2 * (int64_t{sizes.stages} - 1 - rank) + (sizes.chunks - 1) * int64_t{group_of(sizes)} + extra;
  return static_cast<int32_t>(std::min(total, warm));
}

// The steady phase begins with a forward, so one forward more than the warm-up comes before the first backward.
int32_t forwards_first(const ScheduleSizes& sizes, int32_t rank, int32_t extra) {
  return std::min(sizes.micro_batches * sizes.chunks, warm_of(sizes, rank, extra) + 1);
}

Schedule interleaved(const char* name, const ScheduleSizes& sizes, int32_t extra) {
  Schedule schedule{name, sizes, ChunkLayout::kLoop};
  schedule.sizes.group = group_of(sizes);
  const auto table = interleaving_table(sizes, group_of(sizes));
  const auto total = static_cast<int32_t>(table.size());
  for (int32_t r = 0; r < sizes.stages; ++r) {
    RankOrder order;
    order.reserve(table.size() * 2);
    const auto forward = [&](int32_t k) {
      const auto& [mb, chunk] = table[k];
      push(order, CellKind::kForward, mb, chunk);
    };
    const auto backward = [&](int32_t k) {
      const auto& [mb, chunk] = table[k];
      push(order, CellKind::kBackward, mb, sizes.chunks - 1 - chunk);
    };
    const int32_t warm = warm_of(sizes, r, extra);
    for (int32_t k = 0; k < warm; ++k) forward(k);
    for (int32_t k = 0; k < total - warm; ++k) {
      forward(warm + k);
      backward(k);
    }
    for (int32_t k = total - warm; k < total; ++k) backward(k);
    schedule.ranks.push_back(std::move(order));
  }
  return schedule;
}

Result<Schedule> make(const ScheduleSizes& sizes) { return interleaved("vpp", sizes, 0); }
int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) { return forwards_first(sizes, rank, 0); }
int64_t activations(const ScheduleSizes& sizes, int32_t rank) { return warm_up(sizes, rank); }

}  // namespace stageline::vpp

namespace stageline::vpp_ep_overlap {

Result<Schedule> make(const ScheduleSizes& sizes) { return vpp::interleaved("vpp-ep-overlap", sizes, 1); }
int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) { return vpp::forwards_first(sizes, rank, 1); }
int64_t activations(const ScheduleSizes& sizes, int32_t rank) { return warm_up(sizes, rank); }

}  // namespace stageline::vpp_ep_overlap
