// The durations of calls of one kind as a row of a table: count, sum, mean, deviation, quartiles. With --compat msprof
// the columns are msprof-analyze's (those of pandas' describe: deviation with n−1, linear quartiles).
#pragma once

#include <cstdint>
#include <vector>

#include "model/table.h"

namespace stageline {

// Returns the values of the column set "durations" or, with `msprof`, "durations/msprof" of words.json. Sorts `ns`,
// which must hold at least one duration. O(n log n).
std::vector<Table::Value> with_durations(std::vector<Table::Value> keys, std::vector<int64_t>& ns, bool msprof);

int64_t sum_of(const std::vector<int64_t>& ns);

// Returns the standard deviation of a whole population (n), as numpy.std does. `values` is not empty.
double population_std(const std::vector<double>& values);

}  // namespace stageline
