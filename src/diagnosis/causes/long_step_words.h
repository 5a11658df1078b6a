// Long steps as findings: one a reason.
#pragma once

#include <string>
#include <string_view>
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

// Keys of a place (a link, a rank with its host, a replica) that two causes have in common, in the order of `some`; ""
// where there are none, or a rank alone.
std::string shared_places(std::string_view some, std::string_view others);

struct LongStepFinding {
  Finding finding;
  Text reason;
  int64_t count = 0;   // steps
  double late_ns = 0;  // of a message or a start: what it was late by, of the longest
  std::string steps;   // "3, 7": the first of them
};
std::vector<LongStepFinding> long_step_findings(const Trace& trace, const CauseList& causes);

// Adds them to findings of causes. Several steps that are long for what pauses or late messages are told of already are
// a part of these: one cause, one price. So is one whose message is as late as one of the link's late ones may be.
void add_long_steps(const CauseList& causes, std::vector<LongStepFinding> long_steps, std::vector<Finding>& out);

}  // namespace stageline
