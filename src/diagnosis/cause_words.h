// Turns causes into findings: a sentence with a number, a cause and what to do, in every language that the program
// speaks.
#pragma once

#include <vector>

#include "diagnosis/causes/causes.h"
#include "model/finding.h"
#include "pipeline/order/recognise.h"

namespace stageline {

// The finding of one cause of the list, with price and evidence. `recognition` is of the same trace.
Finding cause_finding(const Trace& trace, const CauseList& causes, const Cause& cause, const Recognition& recognition);

// One finding for each cause, in the list's order; but several slow stages are one finding, and so are several slow
// links.
std::vector<Finding> cause_findings(const Trace& trace, const CauseList& causes, const Recognition& recognition);

}  // namespace stageline
