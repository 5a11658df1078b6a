// The problems that compat/msprof reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(ascend, no_such_rank, kWarning);
PROBLEM(ascend, unreadable, kLoss);
PROBLEM(pp_chart, clocks_apart, kWarning);
PROBLEM(pp_chart, links, kWarning);
PROBLEM(pp_chart, no_backwards, kWarning);
PROBLEM(pp_chart, no_cells, kWarning);
PROBLEM(pp_chart, plan, kWarning);

}  // namespace stageline::problem
