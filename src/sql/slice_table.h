// Tables `slices` (slices of every rank) and `kernels` (only the work of devices), read directly from the columns.
//
// These conditions are pushed down: id, rank, class, category, step, stream, lane, tid, parent, launch, correlation,
// and ranges of start, end and duration. Names too, also with LIKE, GLOB and REGEXP; they are tested once for each
// different name. A window of time is found by binary search in each lane; slices that reach into it from before are
// found by the latest end of every 1024 slices. Rows come by rank and lane or, where that is asked for, in the order of
// names, so that GROUP BY name sorts nothing.
#pragma once

#include <memory>

#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

std::shared_ptr<const TableSource> slice_table(std::shared_ptr<const RunData> data);
std::shared_ptr<const TableSource> kernel_table(std::shared_ptr<const RunData> data);

}  // namespace stageline::sql
