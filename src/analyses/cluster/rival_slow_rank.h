// slow-rank as msprof-analyze answers it (--compat msprof).
#pragma once

#include <vector>

#include "analyses/cluster/communication_ops.h"
#include "model/table.h"

namespace stageline {

// Returns the rival's tables SlowRank and SlowOpStats. Its numbers are microseconds, although its column names say Ns.
std::vector<Table> rival_slow_rank(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks);

}  // namespace stageline
