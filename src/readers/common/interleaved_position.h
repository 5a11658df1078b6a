// Megatron's interleaved order: which chunk and micro-batch the k-th forward (backward) of a rank is.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/source_limits.h"

namespace stageline {

struct InterleavedPosition {
  int32_t chunk, micro_batch;
};

// Micro-batches go in groups of `group_size` (by default the number of stages), chunk after chunk. Backwards begin with
// the last chunk. The last group has the rest. `count` is the number of forwards of the iteration over all `chunks`.
inline InterleavedPosition interleaved_position(int64_t k, int64_t count, int32_t group_size, int32_t chunks,
                                                bool forward) {
  const int64_t micro_batches = count / chunks;
  const int64_t group = k / (int64_t{group_size} * chunks);
  const int64_t in_group = k - group * group_size * chunks;
  const int64_t width = std::max<int64_t>(1, std::min<int64_t>(group_size, micro_batches - group * group_size));
  const auto chunk = static_cast<int32_t>(std::min<int64_t>(in_group / width, chunks - 1));
  const int64_t micro_batch = group * group_size + in_group % width;
  return {forward ? chunk : chunks - 1 - chunk,
          static_cast<int32_t>(std::min<int64_t>(micro_batch, kMaxMicroBatchNumber))};
}

}  // namespace stageline
