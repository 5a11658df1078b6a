#include "cli/help.h"

#include <cstdio>

#include "analyses/analysis.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "exporters/exporter.h"
#include "pipeline/cells/cell_rules.h"
#include "readers/reader.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

constexpr int kWidth = 80;

// Returns "  --name VALUE   help…", with the help wrapped in a column of its own.
std::string entry(const std::string& head, const std::string& text, int column) {
  std::string body = wrapped(text, kWidth, column);
  const int width = display_width(head) + 2;
  if (width + 1 > column) return "  " + head + "\n" + body;
  return "  " + head + body.substr(width);
}

std::string flag_head(const Flag& f) {
  std::string head = "--" + std::string(f.name);
  if (std::string_view(f.name) == "output") head = "-o, " + head;
  if (std::string_view(f.name) == "profiling-path") head = "-d, " + head;
  if (f.value[0] != '\0') head += " " + std::string(f.value);
  return head;
}

std::string analysis_help_text(const Analysis& analysis) {
  const bool own_input = analysis.needs == AnalysisNeeds::kTwoRuns;
  std::string out = "stageline analyze " + analysis.name + (own_input ? " --control A --test B" : " PATH…") + "\n" +
                    wrapped(analysis.summary, kWidth, 0) + "\nTables:\n";
  for (const TableSpec* table : analysis.tables()) out += entry(table->name, table->summary, 26);
  out += "\nOptions:\n";
  for (const AnalysisOption& option : analysis.options())
    out += entry(flag_head({option.name, option.value, option.help, option.choices}), option.help, 26);
  for (const std::string_view tool : split(analysis.compat, ','))
    if (!tool.empty())
      out += entry("--compat " + std::string(tool),
                   tool == "hta" ? "HTA's numbers and columns, including its bugs"
                                 : "msprof-analyze's numbers and columns, including its bugs",
                   26);
  if (analysis.format[0] != '\0')
    out += entry(std::string("--format ") + analysis.format, "The table as the PyTorch profiler prints it", 26);
  if (analysis.makes_overlay)
    out += entry("--overlay FILE", "Write the source trace with this answer marked on it", 26);
  return out + entry("…", "and those of every analysis: stageline analyze --help", 26);
}

std::string troff(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

}  // namespace

std::vector<HelpItem> topic_items(std::string_view topic) {
  std::vector<HelpItem> items;
  if (topic == "readers")
    for (const Reader* reader : readers()) items.push_back({reader->name, reader->summary});
  if (topic == "analyses")
    for (const Analysis* analysis : analyses()) {
      std::string tables;
      for (const TableSpec* table : analysis->tables()) append_item(tables, table->name);
      items.push_back({analysis->name, analysis->summary + ". Tables: " + tables});
    }
  if (topic == "exporters")
    for (const Exporter* exporter : exporters()) {
      std::string extensions;
      for (const char* extension : exporter->extensions)
        extensions += (extensions.empty() ? " (." : ", .") + std::string(extension);
      items.push_back({exporter->name, std::string(exporter->summary) + (extensions.empty() ? "" : extensions + ")")});
    }
  if (topic == "schedules")
    for (const ScheduleDef* schedule : schedules())
      items.push_back({schedule->name, std::string(schedule->summary) + ". " + schedule->source});
  return items;
}

std::string overview_text() {
  std::string out = "stageline " STAGELINE_VERSION
                    " – where the time of a distributed training run goes\n\nUsage: stageline COMMAND …\n\n";
  for (const Command& command : command_table()) out += entry(command.name, command.summary, 20);
  out +=
      "\nStart with:  stageline report LOGS -o report.html\n"
      "Lists:       stageline help readers | analyses | exporters | schedules\n"
      "Names:       stageline help cell-rules\n"
      "Details:     stageline COMMAND --help\n";
  return out;
}

std::string command_help_text(const Command& command) {
  std::string out = std::string("stageline ") + command.name + (command.operands.text[0] ? " " : "") +
                    command.operands.text + "\n" + wrapped(command.summary, kWidth, 0) + "\n" +
                    wrapped(command.details, kWidth, 0) + "\n";
  for (const std::string_view name : command.flags)
    out += entry(flag_head(flag_of(command, name)), flag_of(command, name).help, 26);
  out += "\n";
  for (const std::string_view name : common_flags())
    out += entry(flag_head(flag_of(command, name)), flag_of(command, name).help, 26);
  return out;
}

Result<int> run_help(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    fputs(overview_text().c_str(), stdout);
    return kExitGood;
  }
  const std::string topic = dashed(arguments.operands[0]);
  const Command* command = find_command(topic);
  const Analysis* analysis = find_analysis(topic);  // a word may name both an analysis and a command
  if (command) fputs(command_help_text(*command).c_str(), stdout);
  if (command && analysis) fputs("\n", stdout);
  if (analysis) fputs(analysis_help_text(*analysis).c_str(), stdout);
  if (command || analysis) return kExitGood;
  if (topic == "cell-rules") {
    fputs(shipped_cell_rules_text().c_str(), stdout);  // comments in it say how to write rules
    return kExitGood;
  }
  const std::vector<HelpItem> items = topic_items(topic);
  if (items.empty()) {
    std::vector<std::string> known = {"readers", "analyses", "exporters", "schedules", "cell-rules"};
    for (const Command& one : command_table()) known.emplace_back(one.name);
    for (const Analysis* one : analyses()) known.emplace_back(one->name);
    const std::string near = nearest(topic, known);
    return make_error(ErrorCode::kUsage, "no help on \"" + arguments.operands[0] + "\"",
                      near.empty() ? "stageline help lists commands and topics" : "did you mean \"" + near + "\"?");
  }
  for (const HelpItem& item : items) fputs(entry(item.name, item.text, 20).c_str(), stdout);
  return kExitGood;
}

Result<int> run_man(const Arguments&) {
  std::string out = ".TH STAGELINE 1 \"\" \"stageline " STAGELINE_VERSION
                    "\"\n.SH NAME\nstageline \\- where the time of a "
                    "distributed training run goes\n.SH SYNOPSIS\n.B stageline\n.I COMMAND\n[\\fIargument\\fR "
                    "…]\n.SH COMMANDS\n";
  for (const Command& command : command_table()) {
    out += ".SS \"" + troff(command.name) + " " + troff(command.operands.text) + "\"\n" + troff(command.summary) +
           ".\n" + troff(command.details) + "\n";
    for (const std::string_view name : command.flags) {
      out += ".TP\n\\fB\\-\\-" + troff(name) + "\\fR";
      const Flag& f = flag_of(command, name);
      if (f.value[0] != '\0') out += " \\fI" + troff(f.value) + "\\fR";
      out += "\n" + troff(f.help) + ".\n";
    }
  }
  out += ".SH COMMON FLAGS\n";
  for (const std::string_view name : common_flags()) {
    const Flag& f = flag_of(command_table().front(), name);
    out += ".TP\n\\fB\\-\\-" + troff(name) + "\\fR" + (f.value[0] != '\0' ? " \\fI" + troff(f.value) + "\\fR" : "") +
           "\n" + troff(f.help) + ".\n";
  }
  for (const char* topic : {"readers", "analyses", "exporters", "schedules"}) {
    out += ".SH " + std::string(topic) + "\n";
    for (const HelpItem& item : topic_items(topic))
      out += ".TP\n\\fB" + troff(item.name) + "\\fR\n" + troff(item.text) + "\n";
  }
  out += ".SH EXIT STATUS\n0 good, 1 a finding named by \\-\\-fail\\-on, 2 an error, 130 interrupted.\n";
  fputs(out.c_str(), stdout);
  return kExitGood;
}

}  // namespace stageline
