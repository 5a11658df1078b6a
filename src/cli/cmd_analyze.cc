#include "analyses/analysis.h"
#include "base/json_writer.h"
#include "base/output_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_common.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

Result<const Analysis*> analysis_named(const std::string& name) {
  if (const Analysis* found = find_analysis(name)) return found;
  std::vector<std::string> names;
  for (const Analysis* analysis : analyses()) names.emplace_back(analysis->name);
  const std::string near = nearest(dashed(name), names);
  return Error{ErrorCode::kUsage,
               "no analysis \"" + name + "\"",
               {},
               near.empty() ? "stageline help analyses lists them" : "did you mean \"" + near + "\"?"};
}

// Checked before the input is read: the descriptor knows the tables.
Status check_table(const Analysis& analysis, const std::string& name) {
  std::vector<std::string> names;
  for (const AnalysisTable& table : analysis.tables) {
    if (name == table.name) return {};
    names.emplace_back(table.name);
  }
  std::string list;
  for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
  return Error{
      ErrorCode::kUsage, std::string(analysis.name) + " has no table \"" + name + "\"", {}, "its tables are " + list};
}

}  // namespace

int run_analyze(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  Result<const Analysis*> analysis = analysis_named(arguments.operands[0]);
  if (!analysis) return fail(analysis.error());
  const std::string only = arguments.get("table");
  if (!only.empty())
    if (Status s = check_table(**analysis, only); !s) return fail(s.error());
  const std::string format = arguments.get("format", "text");
  if (format != "text" && format != "csv" && format != "json")
    return fail({ErrorCode::kUsage, "--format is text, csv or json, not \"" + format + "\"", {}, ""});
  Result<OutputFile> out = OutputFile::create(arguments.get("output", "-"));
  if (!out) return fail(out.error());

  const std::vector<std::string> paths(arguments.operands.begin() + 1, arguments.operands.end());
  Result<Trace> trace = open_run(arguments, *terminal, paths);
  if (!trace) return fail(trace.error());
  Result<std::vector<Table>> tables = (*analysis)->run(*trace);
  if (!tables) return fail(tables.error());
  if (!only.empty()) std::erase_if(*tables, [&](const Table& table) { return table.name() != only; });

  if (format == "json") {
    JsonWriter json;
    json.begin_object().field("analysis", (*analysis)->name);
    json.key("tables").begin_array();
    for (const Table& table : *tables) append_table_json(json, table);
    json.end_array().end_object();
    out->write(json.text());
    out->write("\n");
  } else {
    bool first = true;
    for (const Table& table : *tables) {
      if (!first) out->write("\n");
      first = false;
      out->write(format == "csv" ? format_table_csv(table)
                                 : format_table_text(table, terminal->width, terminal->colour_out));
    }
  }
  if (Status s = out->commit(); !s) return fail(s.error());
  print_flaws(*terminal, trace->diagnostics, paths[0]);
  return kExitGood;
}

}  // namespace stageline
