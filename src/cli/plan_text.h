// The answer of the command plan in words.
#pragma once

#include "cli/plan_answer.h"
#include "cli/terminal.h"

namespace stageline {

// The first plan, or the one that misses least, in a line.
Text plan_headline(const PlanAnswer& answer);
// The whole answer: the plans, what they rest on, their tables, and what is typed; or what does not fit.
std::string plan_text(const PlanAnswer& answer, const Terminal& terminal);

}  // namespace stageline
