// slow-rank as msprof-analyze answers it (--compat msprof).
#pragma once

#include <vector>

#include "model/table.h"
#include "profile/communication_ops.h"

namespace stageline {

// Returns msprof-analyze's SlowRank and SlowOpStats. Numbers are microseconds, although names of columns say Ns.
std::vector<Table> msprof_slow_rank(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks);

// Returns FreeFrequencyRanks and AbnormalFrequencyRanks of its mode freq_analysis in one table.
Table msprof_clocks(const TorchRun& run);

}  // namespace stageline
