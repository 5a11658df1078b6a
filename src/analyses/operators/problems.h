// The problems that analyses/operators reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(operators, no_shapes, kWarning);
PROBLEM(operators, no_stacks, kWarning);
PROBLEM_CASE(operators, no_stacks, torch, kWarning);
PROBLEM(operators, none, kWarning);

}  // namespace stageline::problem
