// The problems that readers/rocpd reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(rocpd, bad_row, kLoss);
PROBLEM_CASE(rocpd, bad_row, json, kLoss);
PROBLEM_CASE(rocpd, bad_row, long, kLoss);
PROBLEM(rocpd, damaged_table, kLoss);
PROBLEM(rocpd, missing_column, kLoss);
PROBLEM(rocpd, not_projected, kLoss);
PROBLEM(rocpd, other_processes, kInfo);
PROBLEM(rocpd, ranks, kInfo);
PROBLEM(rocpd, ranks_in_order, kWarning);
PROBLEM(rocpd, read_stopped, kLoss);
PROBLEM_CASE(rocpd, read_stopped, damaged, kLoss);
PROBLEM_CASE(rocpd, read_stopped, table, kLoss);
PROBLEM(rocpd, same_process, kInfo);
PROBLEM(rocpd, unusable_file, kLoss);
PROBLEM_CASE(rocpd, unusable_file, damaged, kLoss);
PROBLEM_CASE(rocpd, unusable_file, foreign, kLoss);

}  // namespace stageline::problem
