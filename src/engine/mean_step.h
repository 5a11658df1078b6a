// The step time of a run, for comparing runs.
#pragma once

#include "diagnosis/explanation.h"

namespace stageline {

// `stageline history` keeps it, and the viewer's trend draws it.
struct MeanStep {
  int64_t steps = 0;
  double ns = 0;  // outliers left out
};

// The step of explain's account, else that of the headline's (of a profile whose cells have no account). Errors:
// kUnavailable where neither is of steps: what a whole recording took says as much of its length as of its speed.
Result<MeanStep> mean_step_of(const Explanation& explanation, const std::string& path);

}  // namespace stageline
