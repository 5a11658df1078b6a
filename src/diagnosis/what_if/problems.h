// The problems that diagnosis/what_if reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(what_if, no_schedule, kInfo);
PROBLEM(what_if, one_step, kInfo);
PROBLEM(what_if, outliers, kInfo);
PROBLEM(what_if, stages_missing, kInfo);

}  // namespace stageline::problem
