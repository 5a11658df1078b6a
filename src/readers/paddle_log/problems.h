// The problems that readers/paddle_log reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(paddle, appended_run, kWarning);
PROBLEM(paddle, bad_number, kLoss);
PROBLEM(paddle, bad_utf8, kWarning);
PROBLEM(paddle, chunk_form, kInfo);
PROBLEM(paddle, cut_line, kLoss);
PROBLEM(paddle, damaged_line, kLoss);
PROBLEM(paddle, decimal_comma, kWarning);
PROBLEM(paddle, large_number, kWarning);
PROBLEM(paddle, lost_steps, kWarning);
PROBLEM(paddle, missing_rank, kWarning);
PROBLEM_CASE(paddle, missing_rank, holes, kWarning);
PROBLEM(paddle, negative_job, kLoss);
PROBLEM(paddle, no_jobs, kLoss);
PROBLEM_CASE(paddle, no_jobs, broken, kLoss);
PROBLEM_CASE(paddle, no_jobs, empty, kLoss);
PROBLEM(paddle, repeated_line, kWarning);
PROBLEM(paddle, repeated_log, kWarning);
PROBLEM(paddle, repeated_step, kWarning);
PROBLEM(paddle, unreadable, kLoss);
PROBLEM(paddle, unreadable_rest, kLoss);
PROBLEM(paddle, zero_job, kInfo);

}  // namespace stageline::problem
