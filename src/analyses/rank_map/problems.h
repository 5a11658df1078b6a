// The problems that analyses/rank_map reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(rank_map, missing, kInfo);

}  // namespace stageline::problem
