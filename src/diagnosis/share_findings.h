// Findings on parts of a step without a single culprit: messages that are slow on every link, unexplained time, and
// replicas that wait for the last one.
#pragma once

#include "diagnosis/causes/causes.h"
#include "model/finding.h"
#include "pipeline/measure/run_coverage.h"

namespace stageline {

inline constexpr double kLargePart = 0.05;                         // share of a step
double part_share(const Headline& headline, std::string_view id);  // 0 where there is none

// Findings for the parts of the step breakdown that no cause explains: messages ("messages.slow"), unrecorded time
// ("unexplained") and replicas that wait for each other ("replicas.wait"). Each is made when its part is at least
// kLargePart of a step. They have no estimated saving, because the fastest possible message time is unknown. If another
// finding explains why the last replica is late, its wait becomes a sentence in `replicas` instead of a finding.
struct ShareFindings {
  std::vector<Finding> list;
  Text replicas;  // a sentence on the replicas that wait; "" if they almost never wait
};
// `graph` is that of the trace, before anything is moved out of it. If rows are missing, unexplained time does not
// become a finding: the missing rows may explain it. If no replica was read whole, only recorded messages do.
// O(operations).
ShareFindings share_findings(const Trace& trace, const Headline& headline, const CauseList& causes,
                             const StepGraph& graph, const RunCoverage& coverage);
void add_share_findings(ShareFindings shares, std::vector<Finding>& findings);

}  // namespace stageline
