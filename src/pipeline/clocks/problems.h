// The problems that pipeline/clocks reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(clock, aligned, kInfo);
PROBLEM(clock, bad_match, kWarning);
PROBLEM_CASE(clock, bad_match, around, kWarning);
PROBLEM(clock, collective_not_shared, kInfo);
PROBLEM(clock, contradicting_tie, kLoss);
PROBLEM_CASE(clock, contradicting_tie, all, kLoss);
PROBLEM(clock, no_such_operator, kWarning);
PROBLEM(clock, one_way, kWarning);
PROBLEM(clock, rough, kInfo);
PROBLEM(clock, step, kWarning);
PROBLEM(clock, unmatched, kInfo);
PROBLEM(clock, untied, kWarning);
PROBLEM(clock, wild_drift, kWarning);

}  // namespace stageline::problem
