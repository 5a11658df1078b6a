// Reports long steps as findings, one for each reason.
#pragma once

#include "diagnosis/causes/cause_list.h"
#include "model/finding.h"

namespace stageline {

// The reason of a long step: a clause in both languages, empty if there was no single reason, and its place. `single`
// is one message or one start, which may be one of those that are late in some steps.
struct LongReason {
  Text text;
  std::vector<Place> places = {}, or_else = {};
  bool single = false;
};
LongReason long_reason(const Trace& trace, const LongStep& step);

struct LongStepFinding {
  Finding finding;
  Text reason;
  bool single = false;
  int64_t count = 0;   // number of steps
  double late_ns = 0;  // of a message or a start: how late the latest was
  std::string steps;   // the first of the steps: "3, 7"
};
// Findings "step.outlier" that cost at least kMinLost of the run's time. Steps with the same reason (the same rank,
// the same link) are one finding.
std::vector<LongStepFinding> long_step_findings(const Trace& trace, const CauseList& causes);

// Adds long-step findings to findings of causes. Several long steps whose pauses or late messages are reported already
// become a part of that finding, so that one cause has one price. So does a single one if its message is as late as
// other late messages of the link.
void add_long_steps(const CauseList& causes, std::vector<LongStepFinding> long_steps, std::vector<Finding>& out);

// Adds to the finding "step.uneven" what makes the step long, and where. Takes the finding away where the causes
// explain the difference.
void explain_uneven(const Trace& trace, const CauseList& causes, std::vector<Finding>& findings);

}  // namespace stageline
