// Long steps as findings: one a reason.
#pragma once

#include <string>
#include <vector>

#include "base/words.h"
#include "diagnosis/causes/causes.h"
#include "model/finding.h"

namespace stageline {

// Findings "step.outlier" that cost kLeastLost of the run's time or more; steps with the same reason (the same rank,
// the same link) are one. What made a step long, a clause in both languages; empty where no one thing did. `keys`: as
// Finding::cause.
struct LongReason {
  Text text;
  std::string keys;
};
LongReason long_reason(const Trace& trace, const LongStep& step);

std::vector<Finding> long_step_findings(const Trace& trace, const CauseList& causes);

}  // namespace stageline
