// The problems that readers/memory_snapshot reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(memory_snapshot, bad_entry, kLoss);
PROBLEM_CASE(memory_snapshot, bad_entry, block, kLoss);
PROBLEM_CASE(memory_snapshot, bad_entry, event, kLoss);
PROBLEM(memory_snapshot, damaged, kLoss);
PROBLEM(memory_snapshot, no_history, kInfo);
PROBLEM(memory_snapshot, no_times, kInfo);
PROBLEM(memory_snapshot, repeated_rank, kLoss);
PROBLEM(memory_snapshot, unusable_file, kLoss);
PROBLEM_CASE(memory_snapshot, unusable_file, foreign, kLoss);

}  // namespace stageline::problem
