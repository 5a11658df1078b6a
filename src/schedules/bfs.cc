// Looped breadth-first: the forwards of all micro-batches on chunk 0, then on chunk 1 …; then the backwards of
// all micro-batches on the last chunk, then on the one before. The paper (and PyTorch) reverses the order of
// the micro-batches in the backward; MegatronApp's dynamic pipeline keeps it.
#include "schedules/build.h"

namespace stageline::bfs {

Schedule breadth_first(const char* name, const ScheduleSizes& sizes, bool reversed) {
  Schedule schedule{name, sizes, ChunkLayout::kLoop};
  RankOrder order;
  order.reserve(sizes.micro_batches * static_cast<size_t>(sizes.chunks) * 2);
  for (int32_t chunk = 0; chunk < sizes.chunks; ++chunk)
    for (int32_t i = 0; i < sizes.micro_batches; ++i) push(order, CellKind::kForward, i, chunk);
  for (int32_t chunk = sizes.chunks - 1; chunk >= 0; --chunk)
    for (int32_t i = 0; i < sizes.micro_batches; ++i)
      push(order, CellKind::kBackward, reversed ? sizes.micro_batches - 1 - i : i, chunk);
  schedule.ranks.assign(sizes.stages, order);
  return schedule;
}

Result<Schedule> make(const ScheduleSizes& sizes) { return breadth_first("bfs", sizes, true); }
int32_t warm_up(const ScheduleSizes& sizes, int32_t) { return sizes.micro_batches * sizes.chunks; }
int64_t activations(const ScheduleSizes& sizes, int32_t rank) { return warm_up(sizes, rank); }

}  // namespace stageline::bfs

namespace stageline::bfs_unreversed {

Result<Schedule> make(const ScheduleSizes& sizes) { return bfs::breadth_first("bfs-unreversed", sizes, false); }

}  // namespace stageline::bfs_unreversed
