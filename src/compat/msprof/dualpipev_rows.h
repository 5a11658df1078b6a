// The blocks of one step of MindSpeed's DualPipeV on one stage, in order and with the names that msprof-analyze gives
// them.
//
//   phase                          blocks of stage r of p, m micro-batches
//   0 warm-up                      2(p−1−r) forwards of chunk 0
//   1 interleaved forward          r+1 times: forward of chunk 0, forward of chunk 1
//   2 1b1w1f                       p−1−r times: input gradient, weight gradient, forward, all of chunk 1
//   3 overlap                      m−2p+r+1 times: forward 0 & backward 1, forward 1 & backward 0
//   4 1b1overlap                   p−1−r times: backward of chunk 1, forward 1 & backward 0
//   5 interleaved backward         r+1 backwards, chunk 1 first, in turns
//   6 cool-down                    p backwards, in turns
//
// Stage 0 also computes the gradient of the logits before each backward of chunk 1 up to phase 5. On the last stage the
// first overlap runs as two blocks. Micro-batch i of chunk 1 is written as m+i. Source: MindSpeed's schedule, and the
// table in docs/reference/pp-chart.md.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct DualPipeVRow {
  enum class What : uint8_t { kForward, kForwardAlone, kBackward, kInput, kWeight, kOverlap, kLogits };
  What what = What::kForward;
  int8_t phase = 0;
  int32_t forward = -1, backward = -1;  // micro-batches, in chunk 1 plus m; −1 for none

  std::string name() const;  // "3", "3F", "13B", "13b", "13w", "3F+13B", "logits"
  bool operator==(const DualPipeVRow&) const = default;
};

inline constexpr int32_t kMaxMicroBatches = 1 << 28;  // with this limit, sums of all counts fit into int32

// Returns how many rows a step has on this stage; 0 when the schedule does not exist, because m < 2p − 1 or because
// sizes are not positive.
int64_t dualpipev_row_count(int64_t stages, int64_t micro_batches, int64_t stage);
// Returns those rows; empty when there are none. O(rows), so ask for the count first.
std::vector<DualPipeVRow> dualpipev_rows(int32_t stages, int32_t micro_batches, int32_t stage);

}  // namespace stageline
