// slices and kernels added up: what GROUP BY asks of millions of rows, as one row for each combination of its columns.
//
//   SELECT name, count(*), sum(dur_ns) FROM slices WHERE rank = 3 GROUP BY name ORDER BY 3 DESC
//     by SQLite         ten million rows, two values each, through its machine: 100 ns a row
//     added up before   SELECT name, ifnull(sum(added_count), 0) …, sum(added_sum_dur_ns) …
//                       FROM slices_added_up('name,rank', 'dur_ns') … : the same clauses over some hundred rows
//
// A row stands for slices that agree in all of `keys`. HAVING, ORDER BY, LIMIT and expressions over sums are still
// evaluated by SQLite. Only added_up_query() writes such queries, for SELECTs of which every part is known to mean the
// same; all others are left to SQLite.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sql/run_data.h"
#include "sql/slice_rows.h"
#include "sql/table_source.h"

namespace stageline::sql {

// The tables "slices_added_up" and "kernels_added_up", which only rewritten queries use and which are not listed.
std::vector<std::shared_ptr<const TableSource>> sums_of_slices(const std::shared_ptr<const RunData>& data);

// Returns true if groups can be made by a column.
bool is_key(SliceColumn field);

// The statement, with each SELECT over slices or kernels that only adds up reading the sums; empty where there is none.
std::string added_up_query(std::string_view statement);

}  // namespace stageline::sql
