// Steps of which a source lost records (Trace::lossy_steps).
#pragma once

#include <algorithm>

#include "model/trace.h"

namespace stageline {

// Brings Trace::lossy_steps in order, each step once.
inline void settle_lossy_steps(Trace& trace) {
  std::vector<int32_t>& steps = trace.lossy_steps;
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
}

}  // namespace stageline
