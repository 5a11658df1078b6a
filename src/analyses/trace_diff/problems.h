// The problems that analyses/trace_diff reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(diff, ranks, kInfo);
PROBLEM(diff, steps, kInfo);
PROBLEM_CASE(diff, steps, one_side, kWarning);

}  // namespace stageline::problem
