// Findings that compare a run with the schedule it follows.
#pragma once

#include "model/finding.h"
#include "pipeline/replay/theory.h"

namespace stageline {

// schedule.undelayed: all weight gradients, on at least two stages, run right after their own input gradients. Must not
// be asked of a part of a run, whose schedule is unknown. O(cells).
void add_undelayed(const Trace& trace, const TheoryRun& run, std::vector<Finding>& out);

// There are two findings on runs with a recognised schedule. schedule.late_start: in at least four fifths of the steps,
// a stage starts its first forward late. Its rank was free, and the previous stage has finished a later forward too. It
// is reported only if both are on one clock; its weight is the mean delay ÷ the step.
// A finding schedule.late gives one reason (late messages, late launches, unexplained gaps, cells longer than their
// mean) for most of the time beyond theory. The time is along the waits that lead to the ends of steps, and at least 5
// % of the span. It is reported on one clock only, and not if schedule.late_start reports the same. Definitions:
// docs/analyses/findings.md. O(cells).
void add_late(const Trace& trace, const TheoryRun& run, double pipeline_share, std::vector<Finding>& out);

}  // namespace stageline
