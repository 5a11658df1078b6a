// Notes and rows of durations that several questions about a cluster share.
#pragma once

#include "analyses/analysis.h"
#include "profile/communication_ops.h"

namespace stageline {

// Adds notes on what could not be matched.
void note_unmatched(const Matched& matched, size_t rank_count, Diagnostics& notes);

// For Ascend: adds a note where a profile of Level_none cannot hold what is asked for. Reports do not need it, because
// they note it once for all analyses.
void note_level_none(const AnalysisInput& input, Diagnostics& notes);

// Returns `keys` followed by the durations of calls of one kind: count, sum, mean, deviation, quartiles. These are the
// values of the column set "durations" or, with `msprof`, "durations/msprof" of words.json (pandas' describe: deviation
// with n−1, linear quartiles). Sorts `ns`, which must hold at least one duration. O(n log n).
std::vector<Table::Value> with_durations(std::vector<Table::Value> keys, std::vector<int64_t>& ns, bool msprof);

// Returns the sum of durations, or the limit of the type where it does not fit.
int64_t sum_of(const std::vector<int64_t>& ns);

// Returns the standard deviation of a whole population (n), as numpy.std does. `values` is not empty.
double population_std(const std::vector<double>& values);

}  // namespace stageline
