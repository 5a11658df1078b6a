// The eight steps that DualPipe and DualPipeV share, and the warm-up and steady phase of MindSpeed's variant.
#pragma once

#include <array>
#include <cstdint>

#include "schedules/build.h"

namespace stageline {

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
