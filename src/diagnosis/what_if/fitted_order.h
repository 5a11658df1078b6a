// 1F1B fitted to slow links: more forwards before the first backward on the stages in front of a slow link.
//
// In the steady state every micro-batch waits for a slow link both ways; a stage that has one more micro-batch in
// flight has work meanwhile. It costs the activations of that micro-batch (arXiv 2504.19232).
#pragma once

#include "model/schedule.h"

namespace stageline {

struct LinkCosts {
  std::vector<int64_t> forward, backward;  // of each stage, one micro-batch
  std::vector<int64_t> there, back;        // a message from stage s to s + 1, and from s + 1 to s
  int32_t micro_batches = 0;
};

struct FittedOrder {
  std::vector<int32_t> extra;  // more forwards of each stage, never rising along the pipeline
  int64_t span_ns = 0, plain_ns = 0;
};

// 1F1B whose stage s does extra[s] more forwards before its first backward. `extra` never rises.
Schedule fitted_1f1b(int32_t stages, int32_t micro_batches, const std::vector<int32_t>& extra);

// The fastest order with extra[s] <= room[s]. All are tried where there are at most 10 000, otherwise single steps from
// what the latencies suggest.
FittedOrder fit_order(const LinkCosts& costs, const std::vector<int32_t>& room);

}  // namespace stageline
