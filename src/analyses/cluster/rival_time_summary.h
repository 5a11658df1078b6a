// cluster-time-summary as msprof-analyze answers it (--compat msprof).
#pragma once

#include <vector>

#include "analyses/cluster/communication_ops.h"
#include "model/table.h"

namespace stageline {

// ClusterTimeSummary of the rival, in microseconds. It stands on the profiler's own sums (analysis.db): without them,
// and without one group whose ranks are all there, it has no rows.
Table rival_time_summary(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks);

}  // namespace stageline
