// VPP (interleaved 1F1B): micro-batches go in groups of g (p unless told otherwise); inside a group the
// chunks are walked one after another, which gives the table T[k] = (micro-batch, chunk). The backward uses
// the same table with the chunks mirrored. Rank r warms up with 2(p − 1 − r) + (v − 1)g forwards, then
// alternates F and B, then drains.
//
// Megatron warms up with one forward more when it overlaps a layer's expert-parallel messages with another micro-batch.
// Then the F and the B of a steady pair are independent and can share one cell. Its table lists them one after the
// other, and so does this one; the saving of the overlap is a question of costs, not of order.
#include "schedules/build.h"

namespace stageline {
namespace vpp {

int32_t group_of(const ScheduleSizes& sizes) { return sizes.group > 0 ? sizes.group : sizes.stages; }

template <int32_t kExtra>
int32_t warm_of(const ScheduleSizes& sizes, int32_t rank) {
  const int64_t total = int64_t{sizes.micro_batches} * sizes.chunks;
  const int64_t warm = 2 * (int64_t{sizes.stages} - 1 - rank) + (sizes.chunks - 1) * int64_t{group_of(sizes)} + kExtra;
  return static_cast<int32_t>(std::min(total, warm));
}

// The steady phase begins with a forward, so one forward more than the warm-up comes before the first backward.
template <int32_t kExtra>
int32_t warm_up(const ScheduleSizes& sizes, int32_t rank) {
  return std::min(sizes.micro_batches * sizes.chunks, warm_of<kExtra>(sizes, rank) + 1);
}
template <int32_t kExtra>
int64_t activations(const ScheduleSizes& sizes, int32_t rank) {
  return warm_up<kExtra>(sizes, rank);
}

template <int32_t kExtra>
Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{kExtra == 0 ? "vpp" : "vpp-ep-overlap", sizes, ChunkLayout::kLoop};
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
    const int32_t warm = warm_of<kExtra>(sizes, r);
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

}  // namespace vpp

extern const ScheduleDef vpp_schedule = {
    .name = "vpp",
    .summary = "interleaved 1F1B over several chunks a rank",
    .source = "Narayanan et al., arXiv 2104.04473; Megatron and Paddle's VPP",
    .default_chunks = 2,
    .max_chunks = 64,
    .grouped = true,
    .make = vpp::make<0>,
    .warm_up = vpp::warm_up<0>,
    .bubble_text = "(p−1)(F+B) in chunk times, for m ≥ p in whole groups",
    .bubble_ns = classic_bubble_ns,
    .bubble_min_micro_batches = filled_once,
    .activations_text = "min(mv, 2(p−1−r)+(v−1)g+1) chunks",
    .activations = vpp::activations<0>,
};

extern const ScheduleDef vpp_ep_overlap_schedule = {
    .name = "vpp-ep-overlap",
    .summary = "interleaved 1F1B, one forward more in the warm-up so that steady pairs can overlap",
    .source = "Megatron's overlap_moe_expert_parallel_comm",
    .default_chunks = 2,
    .max_chunks = 64,
    .grouped = true,
    .make = vpp::make<1>,
    .warm_up = vpp::warm_up<1>,
    .bubble_text = "(p−1)(F+B) in chunk times, F and B of a pair one after the other, for m ≥ p in whole groups",
    .bubble_ns = classic_bubble_ns,
    .bubble_min_micro_batches = filled_once,
    .activations_text = "min(mv, 2(p−1−r)+(v−1)g+2) chunks",
    .activations = vpp::activations<1>,
};

}  // namespace stageline
