// The problems that analyses/theory reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(theory, by_rank, kInfo);
PROBLEM(theory, max_late, kInfo);
PROBLEM(theory, none, kInfo);
PROBLEM(theory, outliers, kInfo);
PROBLEM(theory, without, kInfo);

}  // namespace stageline::problem
