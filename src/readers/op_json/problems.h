// The problems that readers/op_json reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(op_json, bad_event, kLoss);
PROBLEM(op_json, bad_field, kLoss);
PROBLEM(op_json, bad_time, kLoss);
PROBLEM(op_json, damaged_text, kLoss);
PROBLEM(op_json, duplicate_key, kLoss);
PROBLEM(op_json, negative_duration, kWarning);
PROBLEM(op_json, other_events, kInfo);
PROBLEM(op_json, ranks_from_process, kInfo);
PROBLEM(op_json, read_stopped, kLoss);
PROBLEM(op_json, stages_inferred, kWarning);
PROBLEM(op_json, step_slices, kInfo);
PROBLEM(op_json, too_many_events, kLoss);
PROBLEM(op_json, truncated, kLoss);
PROBLEM(op_json, unmatched_begin, kLoss);
PROBLEM(op_json, unmatched_end, kLoss);
PROBLEM(op_json, unusable_file, kLoss);

}  // namespace stageline::problem
