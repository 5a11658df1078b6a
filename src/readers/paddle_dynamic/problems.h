// The problems that readers/paddle_dynamic reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(paddle_dynamic, bad_name, kLoss);
PROBLEM(paddle_dynamic, bad_record, kLoss);
PROBLEM(paddle_dynamic, bad_time, kLoss);
PROBLEM_CASE(paddle_dynamic, bad_time, reversed, kLoss);
PROBLEM(paddle_dynamic, damaged_text, kLoss);
PROBLEM(paddle_dynamic, joined_file_ignored, kInfo);
PROBLEM(paddle_dynamic, ranks_inferred, kInfo);
PROBLEM(paddle_dynamic, read_stopped, kLoss);
PROBLEM(paddle_dynamic, steps_counted, kInfo);
PROBLEM(paddle_dynamic, too_many_records, kLoss);
PROBLEM(paddle_dynamic, unmatched_begin, kLoss);
PROBLEM(paddle_dynamic, unmatched_end, kLoss);
PROBLEM(paddle_dynamic, unusable_file, kLoss);

}  // namespace stageline::problem
