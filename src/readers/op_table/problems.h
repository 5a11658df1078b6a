// The problems that readers/op_table reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(op_table, bad_field, kLoss);
PROBLEM(op_table, bad_row, kLoss);
PROBLEM(op_table, bad_time, kLoss);
PROBLEM(op_table, chunks_inferred, kInfo);
PROBLEM(op_table, negative_duration, kWarning);
PROBLEM(op_table, read_stopped, kLoss);
PROBLEM(op_table, repeated_columns, kInfo);
PROBLEM(op_table, too_many_rows, kLoss);
PROBLEM(op_table, two_clocks, kWarning);
PROBLEM(op_table, unknown_clock, kWarning);
PROBLEM(op_table, unknown_columns, kInfo);
PROBLEM(op_table, unknown_kinds, kWarning);
PROBLEM(op_table, unusable_file, kLoss);

}  // namespace stageline::problem
