// Findings on the parts of a step that have no single culprit: messages that are slow on every link, and time that
// nothing explains.
#pragma once

#include <vector>

#include "model/finding.h"
#include "pipeline/causes.h"

namespace stageline {

// Parts of `headline` that cost at least kLargePart of a step beyond what `causes` name of them go to `findings`, by id
// "messages.slow" and "unexplained". They have no price: nobody knows how fast messages can be. O(operations).
inline constexpr double kLargePart = 0.05;
void add_share_findings(const Headline& headline, const CauseList& causes, const StepGraph& graph,
                        std::vector<Finding>& findings);

}  // namespace stageline
