// Turns causes into findings: each kind's own words, with the price that all have in common.
#pragma once

#include "diagnosis/causes/cause_list.h"
#include "model/finding.h"
#include "pipeline/order/recognise.h"

namespace stageline {

// The finding of one cause of the list, with price and evidence. `recognition` is of the same trace.
Finding cause_finding(const Trace& trace, const CauseList& causes, const Cause& cause, const Recognition& recognition);

// One finding for each cause, in the list's order; but those that belong together are one.
std::vector<Finding> cause_findings(const Trace& trace, const CauseList& causes, const Recognition& recognition);

}  // namespace stageline
