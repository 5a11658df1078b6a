// Ranks that begin their steps late: a rank that waits for no other rank starts its first cell later than the same
// stage does in other replicas. It does something else before the step.
//
//     rank 0   step 7 ▐▐▐▐      ▐▐ first cell of step 8
//     rank 4   step 7 ▐▐▐▐      ├── late ──▶▐▐
//
// Delays that all ranks have are a line of the breakdown. Part of causes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "diagnosis/causes/rank_windows.h"
#include "diagnosis/causes/start_delays.h"

namespace stageline {

struct LateBegins {
  uint32_t worker = 0;
  bool as_late = false;  // its other cells start about as late, which explains these beginnings
  int64_t count = 0;
  double each_ns = 0;  // mean delay beyond the others
  // Delays beyond the others, by operation. Delays of long steps are included up to kMaxOfUsual × the largest usual
  // one.
  std::shared_ptr<const std::map<uint32_t, double>> late_ns = {};
  std::vector<RankWindow> pauses = {};  // the delays, each right before its cell

  CauseWorld without() const;
};
// Returns at most kMaxWorkerCauses ranks, the largest delays first. `late` are the ranks whose other cells start late;
// `cell_ns` is the time of the median compute cell. O(operations).
std::vector<LateBegins> late_begins(const CauseScene& scene, const LateWorkers& late, double cell_ns);

}  // namespace stageline
