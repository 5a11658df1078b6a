// Functions gaps(of_rank, of_stream, min_ns), busy(of_rank, from_ns, to_ns, of_class), path(id), below(id),
// args(slice_id).
#pragma once

#include <memory>
#include <vector>

#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

// Most slices whose arguments one connection reads from their files.
inline constexpr int64_t kMaxArgumentSlices = 10'000;

void add_table_functions(const std::shared_ptr<const RunData>& data,
                         std::vector<std::shared_ptr<const TableSource>>& out);

}  // namespace stageline::sql
