// The problems that analyses/potential_stragglers reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(straggler, no_counterpart, kWarning);
PROBLEM(straggler, no_steps, kWarning);
PROBLEM(straggler, not_synchronising, kInfo);

}  // namespace stageline::problem
