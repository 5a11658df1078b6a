// The problems that base reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(sqlite, cut, kLoss);
PROBLEM(sqlite, unmerged_log, kLoss);

}  // namespace stageline::problem
