#include "cli/commands.h"
#include "cli/open_run.h"
#include "cli/paths.h"
#include "diagnosis/compare_runs.h"
#include "diagnosis/diff/diff_report.h"
#include "engine/diff_json.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

// The columns of the list: effect, share, uncertainty, description.
std::string text_of(const Terminal& terminal, const RunDiff& diff) {
  const auto pick = [&](const Text& line) { return line.in(terminal.chinese()); };
  std::string out = "A  " + pick(run_line(diff.a)) + "\nB  " + pick(run_line(diff.b)) + "\n\n";
  Args args;
  args.set("headline", headline(diff)).set("cause", main_cause(diff)).set("each", per_micro_batch(diff));
  out += wrapped(terminal.say("diff.reported", args), terminal.width, 0);
  if (diff.a.profile)
    for (const Text& change : diff.changes) out += wrapped(pick(change) + ".", terminal.width, 0);
  const bool all = diff.items_by != DiffItemsBy::kOperator;
  const std::vector<DiffGroup> reported = merged_groups(diff);
  if (reported.size() == 1 && !diff.sure) return out;
  out += "\n";
  const auto row = [&](const std::string& effect, const std::string& share, const std::string& error,
                       const std::string& words) {
    constexpr int kEffect = 11, kShare = 9, kError = 10;
    std::string line;
    for (const auto& [text, width] : {std::pair{effect, kEffect}, {share, kShare}, {error, kError}}) {
      const int pad = std::max(line.empty() || text.empty() ? 0 : 1, width - display_width(text));
      line += std::string(pad, ' ') + text;
    }
    std::string rest = wrapped(words, terminal.width, kEffect + kShare + kError + 2);
    out += line + rest.substr(kEffect + kShare + kError);
  };
  for (const DiffGroup& g : reported) {
    row(signed_duration(g.effect_ns), signed_percent(g.effect_ns / diff.a.step_ns),
        std::isnan(g.error_ns) || g.error_ns == 0 ? "" : "±" + human_duration(g.error_ns), pick(group_line(diff, g)));
    for (size_t k = 0; k < g.behind.size() && (all || k < 3); ++k)
      if (std::abs(g.behind[k].effect_ns) >= kMinDiffShare * diff.a.step_ns)
        row("", "", "", "  " + signed_duration(g.behind[k].effect_ns) + "  " + pick(item_line(g.behind[k])));
  }
  row(signed_duration(diff.change_ns), signed_percent(diff.change_ns / diff.a.step_ns),
      std::isnan(diff.error_ns) || diff.error_ns == 0 ? "" : "±" + human_duration(diff.error_ns),
      terminal.say("diff.together"));
  return out;
}

}  // namespace

Result<int> run_diff(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "csv" && format != "json")
    return make_error(ErrorCode::kUsage, "diff comes as text, csv or json, not \"" + format + "\"");
  TRY(limit, arguments.share("fail-on"));
  const std::string table = dashed(arguments.get("table"));
  if (!table.empty() && table != "runs" && table != "groups" && table != "items")
    return make_error(ErrorCode::kUsage, "diff has the tables runs, groups and items, not \"" + table + "\"");
  const std::string by = arguments.get("by", "operator");
  if (by != "operator" && by != "class" && by != "module")
    return make_error(ErrorCode::kUsage, "items are by operator, class or module, not by \"" + by + "\"");
  const DiffItemsBy items = by == "class"    ? DiffItemsBy::kClass
                            : by == "module" ? DiffItemsBy::kModule
                                             : DiffItemsBy::kOperator;
  TRY(out, open_output(arguments.get("output", "-"), arguments.operands));
  TRY(a, open_run(arguments, *terminal, {arguments.operands[0]}, "", Clocks::kCompared));
  TRY(b, open_run(arguments, *terminal, {arguments.operands[1]}, "", Clocks::kCompared));
  TRY(diff, compare_runs(Run(*a), Run(*b), items));
  if (format == "json") {
    out->write(diff_json(*diff) + "\n");
  } else if (format == "csv" || !table.empty()) {
    bool first = true;
    for (const Table& t : diff_tables(*diff)) {
      if (!table.empty() && t.name() != table) continue;
      if (!first) out->write("\n");
      first = false;
      if (format == "csv") out->write(format_table_csv(t));
      else
        out->write_painted(
            format_table_text(t, terminal->table_width, terminal->colour_out, SIZE_MAX, false, 0, terminal->chinese()));
    }
  } else {
    out->write(terminal_text(text_of(*terminal, *diff), true));
  }
  TRY_OK(out->commit());
  for (const auto& [trace, path] : {std::pair{&*a, 0}, std::pair{&*b, 1}})
    print_notes(*terminal, trace->diagnostics, arguments.operands[path]);
  for (const Diagnostic& d : diff->notes.items())
    if (d.severity != Severity::kInfo || d.name.starts_with("diff.")) note(*terminal, message_text(*terminal, d));
  const bool fails = *limit && slower_by_more(*diff, **limit);
  if (fails) note(*terminal, terminal->say("diff.fails", Args().set("limit", percent(**limit))));
  return fails ? kExitFinding : kExitGood;
}

}  // namespace stageline
