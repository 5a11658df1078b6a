// cluster-time-summary as msprof-analyze answers it (--compat msprof).
#pragma once

#include <vector>

#include "model/table.h"
#include "profile/communication_ops.h"

namespace stageline {

// Returns msprof-analyze's ClusterTimeSummary, in microseconds. It is based on the profiler's own sums (analysis.db).
// It has no rows if these are missing, or if no group has all of its ranks in the trace.
Table msprof_time_summary(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks);

}  // namespace stageline
