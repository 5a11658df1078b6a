// The problems that compat/paddle_timeline reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(paddle, machine_order, kWarning);
PROBLEM_CASE(paddle, missing_rank, timeline, kLoss);
PROBLEM_CASE(paddle, no_jobs, timeline, kWarning);
PROBLEM(paddle, repeated_device, kWarning);
PROBLEM(paddle, several_machines, kInfo);

}  // namespace stageline::problem
