// Aggregates slices and kernels natively, for queries with GROUP BY over millions of rows: one row for each combination
// of its columns.
//
//   SELECT name, count(*), sum(dur_ns) FROM slices WHERE rank = 3 GROUP BY name ORDER BY 3 DESC
//     by SQLite         ten million rows, two values each, through its machine: 100 ns a row
//     aggregated first  SELECT name, ifnull(sum(aggregate_count), 0) …, sum(aggregate_sum_dur_ns) …
//                       FROM slices_aggregated('name,rank', 'dur_ns') … : the same clauses over some hundred rows
//
// A row stands for slices that agree in all of `keys`. HAVING, ORDER BY, LIMIT and expressions over sums are still
// evaluated by SQLite. Only aggregate_query() writes such queries.
#pragma once

#include "sql/slice_rows.h"

namespace stageline::sql {

// The tables "slices_aggregated" and "kernels_aggregated", which only rewritten queries use and which are not listed.
std::vector<std::shared_ptr<const TableSource>> sums_of_slices(const std::shared_ptr<const RunData>& data);

// Returns true if groups can be made by a column.
bool is_key(SliceColumn field);

// Returns the statement with each such SELECT rewritten; "" where there is none. A SELECT of which any part might mean
// something else over aggregates stays as it is.
std::string aggregate_query(std::string_view statement);

}  // namespace stageline::sql
