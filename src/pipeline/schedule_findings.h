// Findings that compare a run with the schedule it follows.
#pragma once

#include <vector>

#include "model/finding.h"
#include "pipeline/recognise.h"

namespace stageline {

// schedule.order: lists whose forwards and backwards come in another order than the recognised schedule's.
// schedule.late_start: a stage whose first forward begins only after the stage before has finished a later one too, in
// most steps, though its rank was free; told only where both stand on one clock. The weight is the mean delay ÷ the
// step. Definitions: docs/analyses/findings.md. O(cells).
void add_schedule_findings(const Trace& trace, const Recognition& recognition, std::vector<Finding>& out);

}  // namespace stageline
