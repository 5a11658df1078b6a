// The problems that readers/ascend reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(ascend, analysis_db, kLoss);
PROBLEM_CASE(ascend, analysis_db, column, kLoss);
PROBLEM(ascend, bad_step, kLoss);
PROBLEM(ascend, communication_time, kLoss);
PROBLEM(ascend, cut_json, kLoss);
PROBLEM(ascend, damaged_table, kLoss);
PROBLEM(ascend, group_matched, kInfo);
PROBLEM(ascend, kernel_line, kLoss);
PROBLEM_CASE(ascend, kernel_line, end, kLoss);
PROBLEM(ascend, link, kLoss);
PROBLEM(ascend, link_ranks, kWarning);
PROBLEM(ascend, many_stacks, kLoss);
PROBLEM(ascend, missing_column, kLoss);
PROBLEM(ascend, missing_ranks, kWarning);
PROBLEM(ascend, missing_table, kLoss);
PROBLEM(ascend, missing_text, kWarning);
PROBLEM(ascend, no_kernels, kWarning);
PROBLEM(ascend, no_ranges, kInfo);
PROBLEM(ascend, no_steps, kInfo);
PROBLEM(ascend, older_profile, kWarning);
PROBLEM(ascend, rank_unknown, kWarning);
PROBLEM(ascend, repeated_connection, kWarning);
PROBLEM(ascend, same_stamp, kWarning);
PROBLEM(ascend, step_line, kLoss);
PROBLEM(ascend, text_instead, kWarning);
PROBLEM(ascend, trace_cut, kLoss);
PROBLEM(ascend, trace_event, kLoss);
PROBLEM(ascend, trace_flow, kWarning);
PROBLEM(ascend, unknown_schema, kWarning);
PROBLEM(ascend, unreadable_text, kLoss);
PROBLEM_CASE(ascend, unreadable_text, cut, kLoss);
PROBLEM(ascend, unusable_file, kLoss);
PROBLEM(ascend, unusable_rank, kLoss);

}  // namespace stageline::problem
