// Small helpers that the schedules share.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/words.h"
#include "model/schedule.h"

namespace stageline {

inline void push(RankOrder& order, CellKind kind, int32_t micro_batch, int32_t chunk = 0) {
  order.push_back(Action{kind, micro_batch, chunk});
}

// Returns a warm-up of `warm` forwards, then (B, F) until the forwards are used up, then the remaining B.
RankOrder warm_alternate(int32_t warm, int32_t micro_batches);

// Does the same with I instead of B, where weight gradients are owed. After each I, while more than `owed` W are
// pending, the oldest of them runs; the rest runs at the end.
RankOrder warm_alternate_split(int32_t warm, int32_t micro_batches, int32_t owed);

// Returns the table that interleaved schedules go through: groups of `group` micro-batches (the last may be shorter),
// and within a group one chunk after another. Entry k is (micro-batch, chunk).
std::vector<std::pair<int32_t, int32_t>> interleaving_table(const ScheduleSizes& sizes, int32_t group);

// Returns PyTorch's group size: m ÷ max(1, m ÷ p), which makes all groups about equal.
int32_t even_group(const ScheduleSizes& sizes);

// Returns the forwards before the first backward in ZB-V: 2(p−r)−1 on chunk 0 and r + 1 on chunk 1, limited by the
// number of micro-batches.
inline int32_t v_warm_up(const ScheduleSizes& sizes, int32_t rank) {
  return std::min(sizes.micro_batches, 2 * sizes.stages - rank - 1) + std::min(sizes.micro_batches, rank + 1);
}

// Closed forms that several schedules share (docs/schedules/README.md).
double classic_bubble_ns(const ScheduleSizes& sizes, const UnitCosts& costs);  // (p − 1)(F + B)
// ScheduleDef::bubble_min_micro_batches is one of these: p, or 2p − 1.
inline int32_t filled_once(const ScheduleSizes& sizes) { return sizes.stages; }
inline int32_t filled_twice(const ScheduleSizes& sizes) { return 2 * sizes.stages - 1; }
inline constexpr const char* kClassicBubble = "(p−1)(F+B)";

// Makes the error kUsage "NAME needs …, not …".
Error sizes_error(const char* name, const Text& needs, int32_t found);

}  // namespace stageline
