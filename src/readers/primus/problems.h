// The problems that readers/primus reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(primus, bad_iteration, kLoss);
PROBLEM(primus, bad_time, kLoss);
PROBLEM(primus, chunks_assigned, kInfo);
PROBLEM(primus, clock_per_rank, kInfo);
PROBLEM(primus, list_lengths, kLoss);
PROBLEM(primus, missing_ranks, kWarning);
PROBLEM(primus, no_config, kWarning);
PROBLEM(primus, repeated_iteration, kLoss);
PROBLEM(primus, too_long, kWarning);
PROBLEM(primus, truncated, kLoss);
PROBLEM(primus, unusable_file, kLoss);
PROBLEM_CASE(primus, unusable_file, name, kLoss);

}  // namespace stageline::problem
