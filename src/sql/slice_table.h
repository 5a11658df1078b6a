// `slices` and `kernels`: the slices of every rank, or the work of devices alone, straight from their columns.
//
// What is pushed down: id, rank, name (also LIKE, GLOB, REGEXP, asked once of each different name), class, category,
// step, stream, lane, tid, parent, launch, correlation, and ranges of start, end and duration. A window of time is
// found by binary search in each lane; what reaches into it from before by the latest end of every 1024 slices.
// Rows come by rank and lane; in the order of names where that is asked for, so that GROUP BY name sorts nothing.
#pragma once

#include <memory>

#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

std::shared_ptr<const TableSource> slice_table(std::shared_ptr<const RunData> data);
std::shared_ptr<const TableSource> kernel_table(std::shared_ptr<const RunData> data);

}  // namespace stageline::sql
