// Findings on the parts of a step that have no single culprit: messages that are slow on every link, time that nothing
// explains, and replicas that wait for the last one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/causes/causes.h"
#include "model/finding.h"

namespace stageline {

inline constexpr double kLargePart = 0.05;                         // of a step
double part_share(const Headline& headline, std::string_view id);  // 0 where there is none

// What the account's lines of that id take of a step, once all that `causes` name is gone; 0 where there is none.
double left_share(const CauseList& causes, std::string_view id);

// What the account leaves to messages ("messages.slow") and to nothing that was recorded ("unexplained"), and what
// replicas of `headline` wait for each other ("replicas.wait"), where it is at least kLargePart of a step. They have no
// price: nobody knows how fast messages can be. Where long sequences are what replicas wait for, that is a sentence of
// their finding instead.
struct ShareFindings {
  std::vector<Finding> list;
  Text replicas;  // of the replicas that wait, a sentence; "" where they hardly do
};
// `graph` of the trace, before anything is moved out of it. O(operations).
ShareFindings share_findings(const Trace& trace, const Headline& headline, const CauseList& causes,
                             const StepGraph& graph);
void add_share_findings(ShareFindings shares, std::vector<Finding>& findings);

}  // namespace stageline
