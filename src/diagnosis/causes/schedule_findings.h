// Findings that compare a run with the schedule it follows.
#pragma once

#include <vector>

#include "model/finding.h"
#include "pipeline/replay/theory.h"

namespace stageline {

// schedule.undelayed: all weight gradients, of two stages or more, run right after their own input gradients; not to be
// asked of part of a run, whose schedule is not known. O(cells).
void add_undelayed(const Trace& trace, const TheoryRun& run, std::vector<Finding>& out);

// schedule.order: lists whose forwards and backwards come in another order than the recognised schedule's. O(1).
void add_order(const Trace& trace, const Recognition& recognition, std::vector<Finding>& out);

// Of a recognised schedule:
// schedule.late_start: a stage whose first forward begins only after the stage before has finished a later one too, in
// most steps, though its rank was free; told only where both stand on one clock. The weight is the mean delay ÷ the
// step.
// schedule.late: along the waits that lead to the ends of steps, one reason (late messages, late launches, gaps that
// nothing explains, cells beyond their mean) makes up most of the time beyond theory, and ≥ 5 % of the span; on one
// clock only, and not in the words of schedule.late_start again. Definitions: docs/analyses/findings.md. O(cells).
void add_late(const Trace& trace, const TheoryRun& run, double pipeline_share, std::vector<Finding>& out);

}  // namespace stageline
