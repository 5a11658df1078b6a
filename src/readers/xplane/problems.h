// The problems that readers/xplane reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(xplane, bad_time, kLoss);
PROBLEM(xplane, damaged, kLoss);
PROBLEM_CASE(xplane, damaged, foreign, kLoss);
PROBLEM(xplane, huge_plane, kLoss);
PROBLEM(xplane, json_twin, kInfo);
PROBLEM(xplane, lost_events, kLoss);
PROBLEM(xplane, no_step_split, kLoss);
PROBLEM(xplane, not_projected, kLoss);
PROBLEM(xplane, other_runs, kInfo);
PROBLEM(xplane, programs, kInfo);
PROBLEM(xplane, shared_host, kInfo);
PROBLEM(xplane, sums, kLoss);
PROBLEM(xplane, threadpool_marks, kInfo);
PROBLEM(xplane, truncated, kLoss);
PROBLEM(xplane, undated, kWarning);
PROBLEM(xplane, unnamed, kWarning);
PROBLEM(xplane, unusable_file, kLoss);
PROBLEM_CASE(xplane, unusable_file, foreign, kLoss);
PROBLEM(xplane, writer_error, kLoss);
PROBLEM(xplane, writer_warning, kWarning);

}  // namespace stageline::problem
