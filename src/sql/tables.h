// All tables of a run, in the order of their listing: slices come first, and the tables that list tables last.
#pragma once

#include <memory>
#include <vector>

#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

std::vector<std::shared_ptr<const TableSource>> tables_of(const std::shared_ptr<const RunData>& data);

}  // namespace stageline::sql
