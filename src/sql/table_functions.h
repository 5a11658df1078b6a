// The table-valued functions of a run, one source each: gaps(of_rank, of_stream, min_ns), busy(of_rank, from_ns, to_ns,
// of_class), path(id), below(id), args(slice_id).
#pragma once

#include <memory>

#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

std::shared_ptr<const TableSource> gaps_function(const std::shared_ptr<const RunData>& data);
std::shared_ptr<const TableSource> busy_function(const std::shared_ptr<const RunData>& data);
std::shared_ptr<const TableSource> path_function(const std::shared_ptr<const RunData>& data);
std::shared_ptr<const TableSource> below_function(const std::shared_ptr<const RunData>& data);
std::shared_ptr<const TableSource> args_function(const std::shared_ptr<const RunData>& data);

}  // namespace stageline::sql
