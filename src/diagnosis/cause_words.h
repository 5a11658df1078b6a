// Causes as findings: a sentence with a number, a cause and what to do, in every language we speak.
#pragma once

#include <vector>

#include "diagnosis/causes/causes.h"
#include "model/finding.h"
#include "pipeline/order/recognise.h"

namespace stageline {

// One cause of the list, with price and evidence. `recognition` of the same trace.
Finding cause_finding(const Trace& trace, const CauseList& causes, const Cause& cause, const Recognition& recognition);

// One finding a cause but several slow stages, which are one; in its order.
std::vector<Finding> cause_findings(const Trace& trace, const CauseList& causes, const Recognition& recognition);

}  // namespace stageline
