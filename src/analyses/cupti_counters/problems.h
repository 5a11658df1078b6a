// The problems that analyses/cupti_counters reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(cupti, unequal, kWarning);

}  // namespace stageline::problem
