// The problems that readers/kineto reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(kineto, bad_base_time, kWarning);
PROBLEM(kineto, bad_event, kLoss);
PROBLEM(kineto, bad_execution_trace, kLoss);
PROBLEM_CASE(kineto, bad_execution_trace, cut, kLoss);
PROBLEM_CASE(kineto, bad_execution_trace, empty, kLoss);
PROBLEM(kineto, damaged_member, kLoss);
PROBLEM(kineto, damaged_text, kLoss);
PROBLEM(kineto, earlier_run, kLoss);
PROBLEM(kineto, execution_trace, kInfo);
PROBLEM(kineto, far_apart, kWarning);
PROBLEM(kineto, files_joined, kInfo);
PROBLEM(kineto, mixed_clocks, kWarning);
PROBLEM(kineto, other_execution_trace, kLoss);
PROBLEM_CASE(kineto, other_execution_trace, rank, kLoss);
PROBLEM(kineto, overlapping_files, kWarning);
PROBLEM(kineto, perfetto_twin, kInfo);
PROBLEM(kineto, read_stopped, kLoss);
PROBLEM(kineto, repaired_event, kWarning);
PROBLEM(kineto, same_file_twice, kWarning);
PROBLEM(kineto, truncated, kLoss);
PROBLEM_CASE(kineto, truncated, events, kLoss);
PROBLEM(kineto, unusable_file, kLoss);

}  // namespace stageline::problem
