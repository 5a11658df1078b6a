// The tables of a run besides its slices: cells, messages, steps, ranks, lanes, counters, memory, flows, findings …
#pragma once

#include <memory>
#include <vector>

#include "sql/row_table.h"
#include "sql/run_data.h"

namespace stageline::sql {

// Each function adds its part of the list; sql/tables.h has the whole list.
void add_pipeline_tables(const std::shared_ptr<const RunData>& data,
                         std::vector<std::shared_ptr<const TableSource>>& out);
void add_profile_tables(const std::shared_ptr<const RunData>& data,
                        std::vector<std::shared_ptr<const TableSource>>& out);
void add_run_tables(const std::shared_ptr<const RunData>& data, std::vector<std::shared_ptr<const TableSource>>& out);
void add_figure_table(const std::shared_ptr<const RunData>& data, std::vector<std::shared_ptr<const TableSource>>& out);

// A list table, declared as "sql/NAME", whose rows are made once per run.
std::shared_ptr<const TableSource> made_once(const std::shared_ptr<const RunData>& data, const char* name,
                                             std::vector<SqlColumn> columns, std::function<RunData::Made()> make);
// The same for a Table; its columns are those that it has for an empty run.
std::shared_ptr<const TableSource> run_table(const std::shared_ptr<const RunData>& data, const char* name,
                                             Table (*make)(const RunData&));
const RunData& no_run();  // a run without anything

}  // namespace stageline::sql
