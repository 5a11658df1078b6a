// The problems that readers/common reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(reader, bad_row, kLoss);
PROBLEM(reader, clock_behind, kWarning);
PROBLEM(reader, far_time, kLoss);
PROBLEM(reader, impossible_duration, kLoss);
PROBLEM(reader, lost_work, kLoss);
PROBLEM(reader, overlapping_steps, kWarning);
PROBLEM(reader, reversed_time, kWarning);
PROBLEM(reader, zero_time, kLoss);
PROBLEM(table, cut, kLoss);

}  // namespace stageline::problem
