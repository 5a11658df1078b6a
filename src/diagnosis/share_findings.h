// Findings on parts of a step that have no single culprit: messages that are slow on every link, time that nothing
// explains, and replicas that wait for the last one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/causes/causes.h"
#include "model/finding.h"

namespace stageline {

inline constexpr double kLargePart = 0.05;                         // share of a step
double part_share(const Headline& headline, std::string_view id);  // 0 where there is none

// The share of a step that the account's lines with that id take, after all that `causes` name is gone; 0 where there
// is none.
double left_share(const CauseList& causes, std::string_view id);

// What the account leaves to messages ("messages.slow") and to nothing that was recorded ("unexplained"), and what the
// replicas of `headline` wait for each other ("replicas.wait"), where it is at least kLargePart of a step. These have
// no price, since nobody knows how fast messages can be. Where another finding tells what holds the last replica up,
// its wait is only a sentence (`replicas`).
struct ShareFindings {
  std::vector<Finding> list;
  Text replicas;  // a sentence on the replicas that wait; "" where they hardly wait
};
// `graph` is that of the trace, before anything is moved out of it. Where rows are missing (`holed`), what nothing
// explains is no finding: it may be they. O(operations).
ShareFindings share_findings(const Trace& trace, const Headline& headline, const CauseList& causes,
                             const StepGraph& graph, bool holed);
void add_share_findings(ShareFindings shares, std::vector<Finding>& findings);

}  // namespace stageline
