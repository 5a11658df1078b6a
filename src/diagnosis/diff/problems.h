// The problems that diagnosis/diff reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(diff, messages, kInfo);
PROBLEM(diff, not_in_both, kInfo);

}  // namespace stageline::problem
