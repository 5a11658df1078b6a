// The problems that analyses/idle_time_breakdown reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(idle, no_stream, kWarning);

}  // namespace stageline::problem
