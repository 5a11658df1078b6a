// The problems that readers/chakra reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(chakra, damaged_node, kLoss);
PROBLEM(chakra, laid_out, kWarning);
PROBLEM(chakra, no_start, kLoss);
PROBLEM(chakra, ranks_in_order, kWarning);
PROBLEM(chakra, read_stopped, kLoss);
PROBLEM(chakra, truncated, kLoss);
PROBLEM(chakra, unusable_file, kLoss);
PROBLEM_CASE(chakra, unusable_file, foreign, kLoss);

}  // namespace stageline::problem
