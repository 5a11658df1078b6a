// Every table of every analysis as a table-valued function, for example idle_time_breakdown__device_idle(…); its
// options are columns that SELECT * leaves out. Its columns are those of the descriptor, so naming it runs nothing,
// unless the run adds columns. Each set of options is run once per run, when rows are asked for.
#pragma once

#include <memory>
#include <vector>

#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

void add_analysis_tables(const std::shared_ptr<const RunData>& data,
                         std::vector<std::shared_ptr<const TableSource>>& out);

// Returns why this run cannot answer this analysis; "" where it can. O(1).
std::string why_no_analysis(const RunData& data, const TableSource& table);

}  // namespace stageline::sql
