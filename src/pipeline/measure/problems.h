// The problems that pipeline/measure reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(analysis, part_of_replicas, kWarning);
PROBLEM(analysis, part_of_run, kWarning);
PROBLEM(analysis, repeated_work, kWarning);
PROBLEM(analysis, rows_missing, kWarning);

}  // namespace stageline::problem
