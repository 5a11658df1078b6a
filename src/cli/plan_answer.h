// The question to the command plan and its answer.
#pragma once

#include "compat/memory_estimates/memory_estimates.h"
#include "diagnosis/what_if/stage_bytes.h"
#include "plan/search.h"

namespace stageline {

// Ranks whose stages take longer than their layers, and how much longer as a share.
using SlowRanks = std::vector<std::pair<int32_t, double>>;

struct PlanAnswer {
  plan::Wish wish;
  plan::Found found;
  std::vector<memory_estimates::Estimate> compared;  // of the first plan, or of the layout that misses least
  std::string from;                                  // the run that the times come from; "" for estimates
  SlowRanks slow;                                    // of that run
  std::vector<MeasuredStage> memory;                 // of that run, where it was measured and the model is described
  bool limited = false;                              // a memory limit was given or known
  bool sharding_given = false;                       // otherwise the framework's
};

}  // namespace stageline
