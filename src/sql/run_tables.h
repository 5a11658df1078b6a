// The tables of a run besides its slices: cells, messages, steps, ranks, lanes, counters, memory, flows, findings …
#pragma once

#include "sql/row_table.h"
#include "sql/run_data.h"

namespace stageline::sql {

// Each function adds its part of the list; run_tables() has the whole list.
void add_pipeline_tables(const std::shared_ptr<const RunData>& data,
                         std::vector<std::shared_ptr<const TableSource>>& out);
void add_profile_tables(const std::shared_ptr<const RunData>& data,
                        std::vector<std::shared_ptr<const TableSource>>& out);
void add_run_tables(const std::shared_ptr<const RunData>& data, std::vector<std::shared_ptr<const TableSource>>& out);
void add_figure_table(const std::shared_ptr<const RunData>& data, std::vector<std::shared_ptr<const TableSource>>& out);

// A list table, declared as "sql/NAME", whose rows are made once per run.
std::shared_ptr<const TableSource> made_once(const std::shared_ptr<const RunData>& data, const char* name,
                                             std::vector<SqlColumn> columns, std::function<RunData::Made()> make);
// Does the same for a Table; its columns are those that it has for an empty run.
std::shared_ptr<const TableSource> run_table(const std::shared_ptr<const RunData>& data, const char* name,
                                             Table (*make)(const RunData&));
const RunData& no_run();  // a run without anything

// The table-valued functions of a run, one source each: gaps(of_rank, of_stream, min_ns), busy(of_rank, from_ns, to_ns,
// of_class), path(id), below(id), args(slice_id).
std::shared_ptr<const TableSource> gaps_function(const std::shared_ptr<const RunData>& data);
std::shared_ptr<const TableSource> busy_function(const std::shared_ptr<const RunData>& data);
std::shared_ptr<const TableSource> path_function(const std::shared_ptr<const RunData>& data);
std::shared_ptr<const TableSource> below_function(const std::shared_ptr<const RunData>& data);
std::shared_ptr<const TableSource> args_function(const std::shared_ptr<const RunData>& data);

// Arguments of table-valued functions: whole numbers, ranks and ids of slices. Errors are kUsage and name the function.

// A function of a run. Its table "sql/NAME" is declared with its arguments, which follow the columns.
std::shared_ptr<const TableSource> table_function(
    const std::shared_ptr<const RunData>& data, const char* name,
    std::function<RunData::Made(const RunData&, const std::vector<Argument>&)> make);

bool is_given(const Argument& argument);

// Returns the first arguments as whole numbers, nullopt where one is not given; `what` names each for an error: "the
// rank".
Result<std::vector<std::optional<int64_t>>> whole_numbers(const char* function, std::span<const char* const> what,
                                                          const std::vector<Argument>& arguments);

// Returns the indexes of the parts with data that belong to a rank, or of all parts without one.
Result<std::vector<size_t>> parts_of_rank(const RunData& data, const char* function, std::optional<int64_t> rank);

struct SlicePlace {
  size_t part = 0;
  uint32_t slice = 0;
};
// Returns the slice whose id an argument gives.
Result<SlicePlace> slice_of(const RunData& data, const char* function, const Argument& argument);

// totals(by, …) computes counts, sums and extremes of slices by one of their columns. All threads add them up natively,
// where GROUP BY over ten million rows takes seconds. names: the same by name, for the whole run.
void add_totals(const std::shared_ptr<const RunData>& data, std::vector<std::shared_ptr<const TableSource>>& out);

// Tables `slices` (slices of every rank) and `kernels` (only the work of devices), read directly from the columns.
//
// These conditions are pushed down: id, rank, class, category, step, stream, lane, tid, parent, launch, correlation,
// and ranges of start, end and duration. Names too, also with LIKE, GLOB and REGEXP; they are tested once for each
// different name. A window of time is found by binary search in each lane; slices that reach into it from before are
// found by the latest end of every 1024 slices. Rows come by rank and lane or, where that is asked for, in the order of
// names, so that GROUP BY name sorts nothing.
std::shared_ptr<const TableSource> slice_table(std::shared_ptr<const RunData> data);
std::shared_ptr<const TableSource> kernel_table(std::shared_ptr<const RunData> data);

// All tables of a run, in the order of their listing: slices come first, and the tables that list tables last.
std::vector<std::shared_ptr<const TableSource>> tables_of(const std::shared_ptr<const RunData>& data);

}  // namespace stageline::sql
