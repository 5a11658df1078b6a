// The problems that analyses/aten_op_kernels_and_delay reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(aten, no_launch, kWarning);
PROBLEM(aten, no_operator, kInfo);

}  // namespace stageline::problem
