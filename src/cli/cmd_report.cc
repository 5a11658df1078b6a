#include <sys/stat.h>

#include <algorithm>
#include <cstdio>

#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_common.h"

namespace stageline {
namespace {

// 1 when one of the findings named by --fail-on was made.
Result<int> fail_on(const Arguments& arguments, const Findings& findings) {
  if (!arguments.has("fail-on")) return kExitGood;
  const std::vector<std::string> known = {"stage.slow",     "bubble",  "rank.slow",       "step.outlier",
                                          "replica.uneven", "outside", "clock.causality", "any"};
  const std::string list = arguments.get("fail-on");
  for (const std::string_view item : split(list, ',')) {
    const std::string id(trim(item));
    if (std::find(known.begin(), known.end(), id) == known.end()) {
      const std::string near = nearest(id, known);
      return Error{ErrorCode::kUsage,
                   "no finding \"" + id + "\"",
                   {},
                   near.empty() ? "stageline report --help lists them" : "did you mean " + near + "?"};
    }
    for (const Finding& finding : findings.list)
      if (finding.id == id || (id == "any" && finding.id != "none")) return kExitFinding;
  }
  return kExitGood;
}

}  // namespace

int run_report(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  const std::string output = arguments.get("output", "report.html");
  Findings none;
  if (auto checked = fail_on(arguments, none); !checked) return fail(checked.error());
  if (Status s = check_writable(output, arguments.operands); !s) return fail(s.error());
  Result<Trace> trace = open_run(arguments, *terminal, arguments.operands);
  if (!trace) return fail(trace.error());
  const Findings findings = find_findings(*trace);
  ExportOptions options;
  options.lang = terminal->lang;
  options.title = valid_utf8(arguments.get("title", run_name(arguments.operands)));
  const Status written = [&] {
    const WritingBar bar(*terminal);
    return export_trace(*trace, output, "html", options);
  }();
  if (!written) return fail(written.error());
  print_flaws(*terminal, trace->diagnostics, arguments.operands[0]);
  const Extent extent = extent_of(*trace);
  std::string text = findings_text(*terminal, findings);
  if (output != "-") {
    struct stat st{};
    stat(output.c_str(), &st);
    text += "\n" + output + "  " + human_bytes(static_cast<double>(st.st_size)) + "  " +
            std::to_string(trace->parts.size()) + (trace->parts.size() == 1 ? " rank, " : " ranks, ") +
            grouped(static_cast<int64_t>(trace->cells.size())) + " cells, " + std::to_string(extent.step_count) +
            (extent.step_count == 1 ? " step\n" : " steps\n");
  }
  fputs(text.c_str(), output == "-" ? stderr : stdout);
  Result<int> code = fail_on(arguments, findings);
  return code ? *code : fail(code.error());
}

}  // namespace stageline
