// The problems that analyses/schedule reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(schedule, ambiguous, kInfo);
PROBLEM(schedule, labels, kInfo);
PROBLEM(schedule, near_tie, kInfo);
PROBLEM(schedule, not_recognised, kInfo);
PROBLEM(schedule, renumbered, kInfo);
PROBLEM(schedule, with_w, kInfo);

}  // namespace stageline::problem
