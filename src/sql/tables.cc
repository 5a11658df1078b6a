#include "analyses/analysis.h"
#include "engine/engine.h"
#include "model/pipeline_words.h"
#include "sql/functions.h"
#include "sql/run_tables.h"

namespace stageline::sql {
namespace {

std::string underscored(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '-', '_');
  return out;
}

// All tables of one analysis for one set of options.
struct AnswerRows : Rows {
  std::vector<Table> tables;
  size_t size() const override { return 0; }
  void show(sqlite3_context*, size_t, int) const override {}
  int64_t integer(size_t, int) const override { return kNullInteger; }
};

std::string why_not(const RunData& data, const Analysis& analysis) {
  const std::string& name = analysis.name;
  if (analysis.needs == AnalysisNeeds::kTwoRuns) return name + " compares two runs, and SQL is asked of one";
  if (analysis.needs == AnalysisNeeds::kFiles) return name + " reads files that are no traces";
  if (suits(analysis, data.trace())) return "";
  return name + " " + needs_text(analysis.needs);
}

using Option = std::pair<std::string, std::string>;
using Options = std::vector<Option>;

// A table of an analysis as a table-valued function, for example idle_time_breakdown__device_idle(…); its options are
// columns that SELECT * leaves out. Its columns are those of the descriptor, so naming it runs nothing, unless the run
// adds columns. Each set of options is run once per run, when rows are asked for.
class AnalysisSource : public TableSource {
 public:
  AnalysisSource(std::shared_ptr<const RunData> data, const Analysis& analysis, const TableSpec& table)
      : TableSource(underscored(analysis.name) + "__" + underscored(table.name), table.summary), data_(std::move(data)),
        analysis_(analysis), table_(table) {}

  std::string why() const { return why_not(*data_, analysis_); }

  Result<std::vector<SqlColumn>> columns() const override {
    if (!columns_.empty()) return columns_;
    if (std::string why = this->why(); !why.empty()) return no_answer(std::move(why));
    std::vector<SqlColumn> columns = columns_of(in_words_of(data_->trace(), table_));
    if (table_.grows) {
      TRY(table, answer({}));
      columns = columns_of(**table);
    }
    for (const AnalysisOption& option : analysis_.options())
      add_option(columns, option.name, option.value, option.help);
    if (analysis_.compat[0] != '\0')
      add_option(columns, "compat", "TEXT", "A rival's own numbers: " + std::string(analysis_.compat));
    add_option(columns, "include-last-profiler-step", "BOOL",
               "Keep the last profiler step, which is left out when there are several");
    columns_ = columns;
    return columns;
  }
  void plan(Plan& plan) const override { plan_rows(columns_, plan); }
  std::unique_ptr<Cursor> open() const override {
    return row_cursor(columns_, [this](const std::vector<Argument>& arguments) { return rows(arguments); });
  }

 private:
  void add_option(std::vector<SqlColumn>& columns, std::string_view name, std::string_view value,
                  std::string help) const {
    std::string known = underscored(name);
    const auto taken = [&] {
      return std::ranges::any_of(
          columns, [&](const SqlColumn& c) { return sqlite3_stricmp(c.name.c_str(), known.c_str()) == 0; });
    };
    if (taken()) known = "option_" + known;
    columns.push_back(
        {known, value == "N" || value == "BOOL" ? SqlType::kInteger : SqlType::kText, "", std::move(help), true});
    if (names_.size() < analysis_.options().size() + 2) names_.emplace_back(name);
  }

  // Options that may add a table which is missing without options: each switch, each choice, each --compat tool.
  Options single_options() const {
    Options out;
    for (const AnalysisOption& option : analysis_.options()) {
      if (std::string_view(option.value) == "BOOL") out.emplace_back(option.name, "true");
      for (const std::string_view choice : split(option.choices, ','))
        if (!choice.empty() && choice != "true" && choice != "false") out.emplace_back(option.name, choice);
    }
    for (const std::string_view tool : split(analysis_.compat, ','))
      if (!tool.empty()) out.emplace_back("compat", tool);
    return out;
  }

  Error no_answer(std::string why) const {
    return make_error(ErrorCode::kBadInput, std::move(why),
                      "it was read as " + data_->trace().format + "; SELECT * FROM tables says what there is");
  }

  // The table of the analysis with these options (pairs of name and value).
  Result<std::shared_ptr<const Table>> answer(const Options& options) const {
    if (std::string why = this->why(); !why.empty()) return no_answer(std::move(why));
    std::string key = std::string(analysis_.name);
    for (const auto& [name, value] : options) key += std::string("\0", 1) + name + "=" + value;
    const RunData::Made made = data_->made(key, [&]() -> RunData::Made {
      AnalysisInput input{.trace = &data_->trace(), .facts = data_->run()};
      for (const auto& [name, value] : options) {
        if (name == "compat") {
          if (data_->is_mapped())
            return make_error(
                ErrorCode::kUnavailable,
                "a rival's numbers are made of the stamps as recorded, and the clocks of this run were put on one axis",
                "open it with --align never");
          const auto known = split(analysis_.compat, ',');
          if (std::ranges::find(known, value) == known.end())
            return make_error(ErrorCode::kUsage, std::string(analysis_.name) + " has no compat \"" + value + "\"",
                              "it has " + std::string(analysis_.compat));
          input.hta = value == "hta";
          input.msprof = value == "msprof";
        } else if (name == "include-last-profiler-step") {
          input.include_last_step = value != "false";
        } else {
          input.options.set(name, value);
        }
      }
      TRY(result, analysis_.run(input));
      auto rows = std::make_shared<AnswerRows>();
      rows->tables = std::move(result->tables);
      return std::shared_ptr<const Rows>(std::move(rows));
    });
    if (!made) return made.error();
    for (const Table& table : static_cast<const AnswerRows&>(**made).tables)
      if (table.name() == table_.name) return std::shared_ptr<const Table>(*made, &table);
    return make_error(ErrorCode::kUnavailable,
                      std::string(analysis_.name) + " has no table " + table_.name + " of this run with these options");
  }

  RunData::Made rows(const std::vector<Argument>& arguments) const {
    Options options;
    for (size_t i = 0; i < arguments.size() && i < names_.size(); ++i) {
      if (std::holds_alternative<std::monostate>(arguments[i])) continue;
      std::string value = argument_text(arguments[i]);
      const bool is_switch = i >= analysis_.options().size() ? names_[i] != "compat"
                                                             : std::string_view(analysis_.options()[i].value) == "BOOL";
      if (is_switch && (value == "0" || value == "1")) value = value == "1" ? "true" : "false";
      options.emplace_back(names_[i], std::move(value));
    }
    Result<std::shared_ptr<const Table>> table = answer(options);
    // A table that exists only with some option takes the first option that gives it.
    for (const Option& option : single_options()) {
      if (table || table.error().code != ErrorCode::kUnavailable) break;
      if (std::ranges::any_of(options, [&](const Option& given) { return given.first == option.first; })) continue;
      Options with = options;
      with.push_back(option);
      if (Result<std::shared_ptr<const Table>> given = answer(with); given) {
        table = std::move(given);
        options = std::move(with);
      }
    }
    if (!table) return std::move(table).error();
    std::string key = name();
    for (const auto& [name, value] : options) key += std::string("\0", 1) + name + "=" + value;
    return data_->made(key, [&]() -> RunData::Made {
      // Columns follow the descriptor: options may have added others, and another tool's table may have entirely
      // different ones.
      std::vector<int> places;
      for (const SqlColumn& column : columns_)
        if (!options.empty() && !column.is_option) places.push_back((*table)->column_index(column.name));
      return table_rows(**table, std::move(places));
    });
  }

  std::shared_ptr<const RunData> data_;
  const Analysis& analysis_;
  const TableSpec& table_;
  mutable std::vector<SqlColumn> columns_;  // of one connection, so used by one thread
  mutable std::vector<std::string> names_;  // the options' names in the analysis
};

void add_analysis_tables(const std::shared_ptr<const RunData>& data,
                         std::vector<std::shared_ptr<const TableSource>>& out) {
  for (const Analysis* analysis : analyses())
    for (const TableSpec* table : analysis->tables())
      out.push_back(std::make_shared<AnalysisSource>(data, *analysis, *table));
}

// Returns why this run cannot answer this analysis; "" where it can. O(1).
std::string why_no_analysis(const RunData&, const TableSource& table) {
  const auto* analysis = dynamic_cast<const AnalysisSource*>(&table);
  return analysis ? analysis->why() : "";
}

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
