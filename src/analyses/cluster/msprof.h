// The answers that msprof-analyze gives to questions about a cluster (--compat msprof).
#pragma once

#include "model/table.h"
#include "profile/communication_ops.h"

namespace stageline {

// Returns msprof-analyze's ClusterTimeSummary, in microseconds. It is based on the profiler's own sums (analysis.db).
// It has no rows if these are missing, or if no group has all of its ranks in the trace.
Table msprof_time_summary(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks);

// Returns msprof-analyze's SlowRank and SlowOpStats. Numbers are microseconds, although names of columns say Ns.
std::vector<Table> msprof_slow_rank(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks);

// Returns FreeFrequencyRanks and AbnormalFrequencyRanks of its mode freq_analysis in one table.
Table msprof_clocks(const TorchRun& run);

// Returns EPTokensSummary and TopEPTokensInfo of ep_load_balance. They count kernels of type GroupedMatmul of all
// steps, forward and backward. Groups are those that parallel_group_info calls "exp"; where it calls none so, all ranks
// are one.
std::vector<Table> msprof_expert_load(const TorchRun& run);

}  // namespace stageline
