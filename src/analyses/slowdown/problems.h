// The problems that analyses/slowdown reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(slowdown, little, kInfo);
PROBLEM(slowdown, replicas, kInfo);

}  // namespace stageline::problem
