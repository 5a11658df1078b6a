#include "sql/tables.h"

#include "base/text.h"
#include "sql/analysis_tables.h"
#include "sql/functions.h"
#include "sql/run_tables.h"
#include "sql/slice_table.h"
#include "sql/table_functions.h"
#include "sql/totals.h"

namespace stageline::sql {
namespace {

using Sources = std::vector<std::shared_ptr<const TableSource>>;
bool is_analysis(const TableSource& source) { return source.name().find("__") != std::string::npos; }

Table table_list(const RunData& data, const Sources& sources) {
  Table table(declared_table("sql/tables"));
  for (const auto& source : sources)
    table.add_row({source->name(),
                   std::string(is_analysis(*source)                               ? "analysis"
                               : source->help().starts_with(source->name() + "(") ? "function"
                                                                                  : "table"),
                   source->help(), why_no_analysis(data, *source)});
  for (const FunctionHelp& function : function_helps())
    table.add_row({std::string(function.call), std::string("function"), std::string(function.help), std::string()});
  return table;
}

void add_columns(Table& table, const TableSource& source, const std::vector<SqlColumn>& columns) {
  for (const SqlColumn& c : columns)
    table.add_row({source.name(), c.name, std::string(type_name(c.type)), c.unit, int64_t{c.is_option}, c.help});
}

// The columns of one table, analyses included. Without a name, those of all tables except analyses, which have more
// than a thousand.
RunData::Made column_list(const Sources& sources, const std::vector<Argument>& arguments) {
  Table table(declared_table("sql/columns"));
  const std::string wanted = argument_text(arguments[0]);
  std::vector<std::string> names;
  for (const auto& source : sources) {
    names.push_back(source->name());
    if (wanted.empty() ? is_analysis(*source) : sqlite3_stricmp(source->name().c_str(), wanted.c_str()) != 0) continue;
    TRY(columns, source->columns());
    add_columns(table, *source, *columns);
  }
  if (!wanted.empty() && table.row_count() == 0) {
    const std::string near = nearest(wanted, names);
    return make_error(ErrorCode::kUsage, "there is no table \"" + wanted + "\"",
                      near.empty() ? "SELECT name FROM tables lists them" : "did you mean " + near + "?");
  }
  return table_rows(std::move(table));
}

}  // namespace

Sources tables_of(const std::shared_ptr<const RunData>& data) {
  Sources out = {slice_table(data), kernel_table(data)};
  add_pipeline_tables(data, out);
  add_profile_tables(data, out);
  add_run_tables(data, out);
  add_figure_table(data, out);
  add_totals(data, out);
  out.insert(out.end(), {gaps_function(data), busy_function(data), path_function(data), below_function(data),
                         args_function(data)});
  add_analysis_tables(data, out);
  // Without the two tables that list them, which would own themselves.
  const auto all = std::make_shared<const Sources>(out);
  const TableSpec &columns = declared_table("sql/columns"), &tables = declared_table("sql/tables");
  out.push_back(std::make_shared<RowTable>(
      "columns", columns.summary, columns_of(columns),
      [all](const std::vector<Argument>& arguments) { return column_list(*all, arguments); }));
  out.push_back(std::make_shared<RowTable>(
      "tables", tables.summary, columns_of(tables),
      [data, all](const std::vector<Argument>&) -> RunData::Made { return table_rows(table_list(*data, *all)); }));
  return out;
}

}  // namespace stageline::sql
