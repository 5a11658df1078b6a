// What several questions about a cluster share, and the answers that msprof-analyze gives to some of them.
#pragma once

#include "analyses/analysis.h"
#include "model/table.h"
#include "profile/communication_ops.h"
#include "profile/torch_view.h"

namespace stageline {

// Adds notes on what could not be matched.
void note_unmatched(const Matched& matched, size_t rank_count, Diagnostics& notes);

// For Ascend: adds a note where a profile of Level_none cannot hold what is asked for. Reports do not need it, because
// they note it once for all analyses.
void note_level_none(const AnalysisInput& input, Diagnostics& notes);

// The durations of calls of one kind as a row of a table: count, sum, mean, deviation, quartiles. With --compat msprof
// the columns are msprof-analyze's (those of pandas' describe: deviation with n−1, linear quartiles).

// Returns the values of the column set "durations" or, with `msprof`, "durations/msprof" of words.json. Sorts `ns`,
// which must hold at least one duration. O(n log n).
std::vector<Table::Value> with_durations(std::vector<Table::Value> keys, std::vector<int64_t>& ns, bool msprof);

int64_t sum_of(const std::vector<int64_t>& ns);

// Returns the standard deviation of a whole population (n), as numpy.std does. `values` is not empty.
double population_std(const std::vector<double>& values);

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
