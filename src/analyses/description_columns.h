// The columns of pandas' describe(), which HTA's tables of statistics end with.
#pragma once

#include <vector>

#include "model/table.h"

namespace stageline {

// Returns `keys` and, after them, the members of a Description (model/statistics.h).
inline std::vector<ColumnSpec> with_description(std::vector<ColumnSpec> keys) {
  for (const char* name : {"count", "mean", "std", "min", "25%", "50%", "75%", "max"})
    keys.push_back({name, name, ColumnType::kReal, ""});
  return keys;
}

}  // namespace stageline
