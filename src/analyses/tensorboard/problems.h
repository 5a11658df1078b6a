// The problems that analyses/tensorboard reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(tb, collectives_alone, kInfo);
PROBLEM(tb, collectives_unequal, kWarning);
PROBLEM(tb, steps_dropped, kInfo);

}  // namespace stageline::problem
