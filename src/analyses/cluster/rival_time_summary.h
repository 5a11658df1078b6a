// cluster-time-summary as msprof-analyze answers it (--compat msprof).
#pragma once

#include <vector>

#include "analyses/cluster/communication_ops.h"
#include "model/table.h"

namespace stageline {

// Returns the rival's ClusterTimeSummary, in microseconds. It is based on the profiler's own sums (analysis.db).
// Without them, or when no group has all of its ranks in the trace, it has no rows.
Table rival_time_summary(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks);

}  // namespace stageline
