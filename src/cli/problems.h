// The problems that cli reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(view, all_steps, kWarning);

}  // namespace stageline::problem
