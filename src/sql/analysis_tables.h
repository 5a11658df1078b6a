// Every table of every analysis as a table-valued function: idle_time_breakdown__device_idle(…), whose options are
// columns that SELECT * leaves out. Its columns are known once it has run, which it does with its defaults when a query
// first names it; each set of options is run once for the run.
#pragma once

#include <memory>
#include <vector>

#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

void add_analysis_tables(const std::shared_ptr<const RunData>& data,
                         std::vector<std::shared_ptr<const TableSource>>& out);

// Why this run cannot be asked this analysis; "": it can. O(1).
std::string why_no_analysis(const RunData& data, const TableSource& table);

}  // namespace stageline::sql
