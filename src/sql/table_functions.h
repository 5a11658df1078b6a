// gaps(rank, stream, least_ns), path(id), below(id), args(slice_id).
#pragma once

#include <memory>
#include <vector>

#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

// Arguments of slices are read from their files: of so many a connection.
inline constexpr int64_t kMostArgumentSlices = 10'000;

void add_table_functions(const std::shared_ptr<const RunData>& data,
                         std::vector<std::shared_ptr<const TableSource>>& out);

}  // namespace stageline::sql
