// The problems that diagnosis/diff reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(diff, messages, kInfo);

}  // namespace stageline::problem
