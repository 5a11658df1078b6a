// How long the calls of one kind took, as a row of a table: count, sum, mean, deviation, quartiles. With a rival's mode
// the columns are msprof-analyze's (pandas' describe: n−1 deviation, linear quartiles).
#pragma once

#include <cstdint>
#include <vector>

#include "model/table.h"

namespace stageline {

// The columns `keys` and behind them those of the durations.
std::vector<ColumnSpec> with_duration_columns(std::vector<ColumnSpec> keys, bool msprof);
// The values of those columns; sorts `ns`, which holds at least one duration. O(n log n).
std::vector<Table::Value> with_durations(std::vector<Table::Value> keys, std::vector<int64_t>& ns, bool msprof);

int64_t sum_of(const std::vector<int64_t>& ns);

}  // namespace stageline
