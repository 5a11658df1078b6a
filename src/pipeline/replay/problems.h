// The problems that pipeline/replay reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(graph, cut_waits, kWarning);
PROBLEM(graph, from_cells, kInfo);
PROBLEM_CASE(graph, from_cells, gaps, kInfo);
PROBLEM_CASE(graph, from_cells, messages, kInfo);
PROBLEM(graph, negative_times, kWarning);
PROBLEM(graph, operations_left_out, kInfo);
PROBLEM(graph, outlier_steps, kInfo);

}  // namespace stageline::problem
