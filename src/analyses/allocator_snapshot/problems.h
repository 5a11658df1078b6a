// The problems that analyses/allocator_snapshot reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(allocator_snapshot, unlike, kWarning);

}  // namespace stageline::problem
