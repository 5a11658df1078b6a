#include <sys/stat.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/open_run.h"
#include "cli/paths.h"
#include "cli/picture_flags.h"
#include "readers/reader.h"
#include "server/page/page_file.h"

namespace stageline {
namespace {

// Returns 1 when there is a finding that --fail-on names, or when more is lost than the share that it gives.
Result<int> fail_on(const Arguments& arguments, const Findings& findings, double lost_share) {
  if (!arguments.has("fail-on")) return kExitGood;
  if (arguments.get("fail-on").ends_with("%")) {
    TRY(limit, arguments.share("fail-on"));
    return lost_share > **limit ? kExitFinding : kExitGood;
  }
  std::vector<std::string> known(finding_ids().begin(), finding_ids().end());
  known.emplace_back("any");
  const std::string list = arguments.get("fail-on");
  for (const std::string_view item : split(list, ',')) {
    const std::string id(trim(item));
    if (std::ranges::find(known, id) == known.end()) {
      if (id.ends_with("%"))
        return make_error(ErrorCode::kUsage,
                          "--fail-on takes a share or a list of findings, and \"" + list + "\" mixes them",
                          "--fail-on " + id + " alone asks what all causes cost together; ask for both in two calls");
      const std::string near = nearest(id, known);
      return make_error(ErrorCode::kUsage, "no finding \"" + id + "\"",
                        near.empty() ? "stageline report --help lists them" : "did you mean " + near + "?");
    }
    const auto is = [&](const Finding& finding) { return finding.id == id || (id == "any" && finding.id != "none"); };
    if (std::ranges::any_of(findings.list, is)) return kExitFinding;
    // A wait of ranks is not a fault and is not in the list, but --fail-on may name it.
    if (id != "any" && std::ranges::any_of(findings.others, is)) return kExitFinding;
  }
  return kExitGood;
}

// Returns "4 ranks, 1 280 cells, 5 steps"; for a profiler trace the number of its slices.
std::string what_it_holds(const WrittenPage& page) {
  const auto count = [](int64_t n, const char* one, const char* many) {
    return grouped(n) + " " + (n == 1 ? one : many);
  };
  const std::string ranks = count(page.ranks, "rank", "ranks") + ", ";
  if (page.cells == 0) return ranks + count(page.slices, "slice", "slices");
  return ranks + count(page.cells, "cell", "cells") + ", " + count(page.steps, "step", "steps");
}

}  // namespace

Result<int> run_report(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string output = arguments.get("output", "report.html");
  Findings none;
  if (auto checked = fail_on(arguments, none, 0); !checked) return std::move(checked).error();
  const std::string second = arguments.get("compare");
  std::vector<std::string> inputs = arguments.operands;
  if (arguments.has("compare")) inputs.push_back(second);
  TRY_OK(check_writable(output, inputs));
  if (arguments.has("compare"))
    if (const Result<Source> source = scan_source({second}); !source) return std::move(source).error();
  TRY(trace, open_run(arguments, *terminal, arguments.operands, "", Clocks::kOneAxisIfKnown));
  std::unique_ptr<ComparedRun> other;
  if (arguments.has("compare")) {
    TRY(compared, open_run(arguments, *terminal, {second}, "", Clocks::kCompared));
    print_notes(*terminal, compared->diagnostics, second);
    other = std::make_unique<ComparedRun>();
    other->title = valid_utf8(run_name({second}));
    other->paths = {second};
    other->trace = std::move(*compared);
  }
  PageOptions options;
  options.lang = terminal->lang;
  TRY_OK(check_choice(arguments, "ghosts"));
  options.ghosts = ghosts_of(arguments);
  options.paths = arguments.operands;
  options.command = "stageline view" + shell_words(arguments.operands);
  if (other) options.command += " --compare " + shell_word(second);
  options.title = valid_utf8(arguments.get("title", run_name(arguments.operands)));
  TRY_OK(arguments.take("slices", 0, kMaxPageSlices, options.max_slices));
  Diagnostics notes = trace->diagnostics;
  const Result<WrittenPage> written = [&] {
    const WritingBar bar(*terminal);
    return write_page_file(std::move(*trace), notes, output, options, std::move(other));
  }();
  if (!written) return std::move(written).error();
  const Findings& findings = written->findings;
  for (const Diagnostic& d : notes.items())
    if (d.name == "clock.aligned") note(*terminal, message_text(*terminal, d));
  print_notes(*terminal, notes, arguments.operands[0]);
  std::string text = findings_text(*terminal, findings);
  if (output != "-") {
    struct stat st{};
    stat(output.c_str(), &st);
    text += "\n" + terminal_text(output) + "  " + human_bytes(st.st_size) + "  " + what_it_holds(*written) + "\n";
  }
  fputs(text.c_str(), output == "-" ? stderr : stdout);
  return fail_on(arguments, findings, written->lost_share);
}

}  // namespace stageline
