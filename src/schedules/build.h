// Small helpers that the schedule files share.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/schedule.h"

namespace stageline {

inline void push(RankOrder& order, CellKind kind, int32_t micro_batch, int32_t chunk = 0) {
  order.push_back(Action{kind, micro_batch, chunk});
}

// Warm-up of `warm` forwards, then (B, F) until the forwards run out, then the remaining B.
RankOrder warm_alternate(int32_t warm, int32_t micro_batches);

// The same with I instead of B, owing weight gradients: after each I the oldest W runs while more than `owed`
// of them are pending; the rest drains at the end.
RankOrder warm_alternate_split(int32_t warm, int32_t micro_batches, int32_t owed);

// The table that interleaved schedules walk: groups of `group` micro-batches (the last may be short), inside a
// group chunk after chunk. Entry k is (micro-batch, chunk).
std::vector<std::pair<int32_t, int32_t>> interleaving_table(const ScheduleSizes& sizes, int32_t group);

// PyTorch's group: m ÷ max(1, m ÷ p), so that all groups are about equal.
int32_t even_group(const ScheduleSizes& sizes);

// Forwards before the first backward of ZB-V: 2(p−r)−1 + r on chunk 0 and r + 1 on chunk 1, of those that there are.
inline int32_t v_warm_up(const ScheduleSizes& sizes, int32_t rank) {
  return std::min(sizes.micro_batches, 2 * sizes.stages - rank - 1) + std::min(sizes.micro_batches, rank + 1);
}

// Closed forms that several schedules share (docs/schedules/README.md).
double classic_bubble_ns(const ScheduleSizes& sizes, const UnitCosts& costs);             // (p − 1)(F + B)
inline int32_t filled_once(const ScheduleSizes& sizes) { return sizes.stages; }           // bubble_least: p
inline int32_t filled_twice(const ScheduleSizes& sizes) { return 2 * sizes.stages - 1; }  // bubble_least: 2p − 1
inline constexpr const char* kClassicBubble = "(p−1)(F+B)";

// Errors: kUsage "NAME needs …, not …".
Error sizes_error(const char* name, const std::string& needs, int32_t found);

}  // namespace stageline
