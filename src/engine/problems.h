// The problems that engine reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(analysis, not_possible, kWarning);
PROBLEM(clock, not_shared, kWarning);
PROBLEM(clock, refused, kLoss);
PROBLEM(clock, shared, kInfo);
PROBLEM(export, cells_alone, kWarning);
PROBLEM(export, no_event_tables, kInfo);
PROBLEM(filter, no_devices, kWarning);
PROBLEM(filter, no_such_rank, kWarning);
PROBLEM(filter, steps_of_cells, kWarning);
PROBLEM(source, copies, kInfo);
PROBLEM(source, damaged, kLoss);
PROBLEM_CASE(source, damaged, skipped, kLoss);
PROBLEM_CASE(source, damaged, start, kLoss);
PROBLEM(source, ends_early, kLoss);
PROBLEM(source, passed_over, kInfo);
PROBLEM(source, repeated, kWarning);
PROBLEM(source, unreadable, kLoss);
PROBLEM_CASE(theory, none, ghosts, kWarning);

}  // namespace stageline::problem
