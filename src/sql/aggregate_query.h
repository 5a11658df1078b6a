// Rewrites SELECTs over slices and kernels that need only aggregates, so that they read slice_sums.h.
#pragma once

#include <string>
#include <string_view>

namespace stageline::sql {

// Returns the statement with each such SELECT rewritten; "" where there is none. A SELECT of which any part might mean
// something else over aggregates stays as it is.
std::string aggregate_query(std::string_view statement);

}  // namespace stageline::sql
