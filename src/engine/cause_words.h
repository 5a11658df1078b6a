// Causes as findings: a sentence with a number, a cause and what to do, in every language we speak.
#pragma once

#include <vector>

#include "model/finding.h"
#include "pipeline/causes.h"
#include "pipeline/recognise.h"

namespace stageline {

// One finding a cause, in its order, with price and evidence. `recognition` of the same trace.
std::vector<Finding> cause_findings(const Trace& trace, const CauseList& causes, const Recognition& recognition);

}  // namespace stageline
