// The problems that profile reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(bandwidth, no_rate, kWarning);
PROBLEM(profile, last_step, kInfo);
PROBLEM(queue, early_start, kWarning);
PROBLEM(queue, no_launch, kWarning);

}  // namespace stageline::problem
