// The problems that readers/common/rows reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(kineto, bad_duration, kLoss);
PROBLEM(kineto, bad_time, kLoss);
PROBLEM(kineto, many_streams, kLoss);
PROBLEM(kineto, missing_ranks, kInfo);
PROBLEM(kineto, negative_duration, kLoss);
PROBLEM(kineto, no_duration, kLoss);
PROBLEM(kineto, no_time, kLoss);
PROBLEM(kineto, rank_beyond_world, kWarning);
PROBLEM(kineto, unmatched_begin, kLoss);
PROBLEM(kineto, unmatched_end, kLoss);
PROBLEM(kineto, world_sizes_differ, kWarning);
PROBLEM(reader, many_streams, kLoss);
PROBLEM(reader, rank_conflict, kWarning);
PROBLEM(reader, rank_said_twice, kWarning);
PROBLEM(reader, ranks_by_order, kInfo);
PROBLEM(reader, ranks_from_names, kInfo);

}  // namespace stageline::problem
