// Looped breadth-first: the forwards of all micro-batches on chunk 0, then on chunk 1 …; then the backwards of
// all micro-batches on the last chunk, then on the one before. The paper (and PyTorch) reverses the order of
// the micro-batches in the backward; MegatronApp's dynamic pipeline keeps it.
#include "schedules/build.h"

namespace stageline {
namespace bfs {

template <bool kReversed>
Result<Schedule> make(const ScheduleSizes& sizes) {
  Schedule schedule{kReversed ? "bfs" : "bfs-unreversed", sizes, ChunkLayout::kLoop};
  RankOrder order;
  order.reserve(sizes.micro_batches * static_cast<size_t>(sizes.chunks) * 2);
  for (int32_t chunk = 0; chunk < sizes.chunks; ++chunk)
    for (int32_t i = 0; i < sizes.micro_batches; ++i) push(order, CellKind::kForward, i, chunk);
  for (int32_t chunk = sizes.chunks - 1; chunk >= 0; --chunk)
    for (int32_t i = 0; i < sizes.micro_batches; ++i)
      push(order, CellKind::kBackward, kReversed ? sizes.micro_batches - 1 - i : i, chunk);
  schedule.ranks.assign(sizes.stages, order);
  return schedule;
}

int32_t warm_up(const ScheduleSizes& sizes, int32_t) { return sizes.micro_batches * sizes.chunks; }
int64_t activations(const ScheduleSizes& sizes, int32_t rank) { return warm_up(sizes, rank); }

}  // namespace bfs

extern const ScheduleDef bfs_schedule = {
    .name = "bfs",
    .summary = "looped breadth-first: all forwards chunk by chunk, all backwards in reverse",
    .source = "Lamy-Poirier, arXiv 2211.05953; PyTorch's LoopedBFS",
    .default_chunks = 2,
    .max_chunks = 64,
    .make = bfs::make<true>,
    .warm_up = bfs::warm_up,
    .bubble_text = "(p−1)(F+B) in chunk times, for m ≥ p",
    .bubble_ns = classic_bubble_ns,
    .bubble_min_micro_batches = filled_once,
    .activations_text = "m·v chunks",
    .activations = bfs::activations,
};

extern const ScheduleDef bfs_unreversed_schedule = {
    .name = "bfs-unreversed",
    .summary = "looped breadth-first with the backwards in micro-batch order",
    .source = "MegatronApp's dynamic pipeline, as its traces show",
    .default_chunks = 2,
    .max_chunks = 64,
    .make = bfs::make<false>,
    .warm_up = bfs::warm_up,
    .bubble_text = "(p−1)(F+B) in chunk times, for m ≥ p",
    .bubble_ns = classic_bubble_ns,
    .bubble_min_micro_batches = filled_once,
    .activations_text = "m·v chunks",
    .activations = bfs::activations,
};

}  // namespace stageline
