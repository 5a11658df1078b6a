// Small helpers that the schedules share.
#pragma once

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

// The eight steps that DualPipe and DualPipeV share, and the warm-up and steady phase of MindSpeed's variant.

// One rank of a V of `ranks` ranks. Chunk 0 is the chunk on the way to the turn, chunk 1 the one on the way back. Each
// chunk has `micro_batches` micro-batches, at least 2·ranks − 1. `rank` 0 is the far end, ranks − 1 the turn.
//
//   1. 2(n−r−1) × F0          5. (n−r−1) × B1 [F1&B0]
//   2. (r+1) × F0 F1          6. (r+1) × B1 B0, from the middle on I instead of B
//   3. (n−r−1) × I1 W F1      7. (n−r−1) × W I0
//   4. steady: [F0&B1][F1&B0] 8. (r+1) × W
//
// At the turn, the first F0 and B1 of step 4 belong to the same micro-batch and cannot overlap.
// A W belongs to the oldest I that has none yet. Micro-batches count from 0 in each chunk.
class DualPipeRank {
 public:
  DualPipeRank(int32_t ranks, int32_t micro_batches, int32_t rank)
      : ranks_(ranks), micro_batches_(micro_batches), rank_(rank) {}

  RankOrder dualpipe();
  // Returns MindSpeed's order: steps 1–5 as above, then all remaining backwards, B1 and B0 in turn, unsplit. With
  // `detach` those after the first r + 1 are split: each I is followed by the oldest W once r are owed.
  RankOrder mindspeed(bool detach);

 private:
  void warm_up_and_steady();
  void forward(int32_t chunk);
  void backward(int32_t chunk, bool split);
  void weight();
  void overlapped(int32_t forward_chunk, int32_t backward_chunk);

  int32_t ranks_, micro_batches_, rank_;
  std::array<int32_t, 2> forwards_ = {}, backwards_ = {};
  std::vector<Action> owed_;
  size_t paid_ = 0;
  RankOrder order_;
};

// Returns how many forwards come before the first backward; the F of an overlapped cell is one of them.
int32_t dualpipe_warm_up(int32_t ranks, int32_t rank);
// Returns (n − 1)(FB + B − 3W), which is exact where F = I.
double dualpipe_bubble_ns(int32_t ranks, const UnitCosts& costs);

}  // namespace stageline
