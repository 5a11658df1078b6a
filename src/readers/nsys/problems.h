// The problems that readers/nsys reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(nsys, bad_metric, kLoss);
PROBLEM(nsys, damaged_table, kLoss);
PROBLEM(nsys, lost_events, kLoss);
PROBLEM(nsys, missing_column, kLoss);
PROBLEM(nsys, no_nccl_sizes, kInfo);
PROBLEM(nsys, not_exported, kLoss);
PROBLEM(nsys, not_projected, kLoss);
PROBLEM(nsys, open_ranges, kWarning);
PROBLEM(nsys, other_processes, kInfo);
PROBLEM(nsys, ranks, kInfo);
PROBLEM(nsys, ranks_by_device, kWarning);
PROBLEM(nsys, steps, kInfo);
PROBLEM(nsys, unusable_file, kLoss);
PROBLEM(nsys, unusable_report, kLoss);
PROBLEM(nsys, warning, kInfo);
PROBLEM(nsys, whole_graphs, kWarning);

}  // namespace stageline::problem
