// The problems that analyses/xla_steps reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(xla_steps, none, kInfo);

}  // namespace stageline::problem
