// The problems that readers/digest reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(digest, damaged, kLoss);
PROBLEM(digest, missing_ranks, kLoss);
PROBLEM(digest, other_source, kLoss);
PROBLEM(digest, rank_twice, kLoss);

}  // namespace stageline::problem
