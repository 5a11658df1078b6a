#include <cmath>

#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_common.h"
#include "server/page_export.h"

namespace stageline {

int run_export(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  const std::string output = arguments.get("output");
  if (output.empty())
    return fail({ErrorCode::kUsage,
                 "export needs to know where to write",
                 {},
                 "stageline export PATH… -o pipeline.pftrace; -o - is stdout"});
  Result<const Exporter*> exporter = choose_exporter(arguments.get("to"), output);
  if (!exporter) return fail(exporter.error());
  ExportOptions options;
  options.lang = terminal->lang;
  options.dark = arguments.has("dark");
  options.ghosts = ghosts_of(arguments);
  options.title = valid_utf8(arguments.get("title", run_name(arguments.operands)));
  Result<double> width = arguments.real("width", 0);
  if (!width) return fail(width.error());
  if (arguments.has("width") && !(*width >= 200 && *width <= 32'000))
    return fail({ErrorCode::kUsage, "--width is 200 to 32000 pixels", {}, ""});
  options.width_px = *width;
  if (Status s = check_writable(output, arguments.operands); !s) return fail(s.error());
  options.hta = arguments.has("compat");
  Result<Trace> trace = open_run(arguments, *terminal, arguments.operands, (*exporter)->compat,
                                 (*exporter)->one_axis       ? Clocks::kOneAxis
                                 : (*exporter)->needs_tables ? Clocks::kCompared
                                                             : Clocks::kRaw);
  if (!trace) return fail(trace.error());
  std::vector<std::string> paths;
  const Status written = [&] {
    const WritingBar bar(*terminal);
    return export_run(*trace, output, (*exporter)->name, options, arguments.operands, &paths);
  }();
  if (!written) return fail(written.error());
  print_notes(*terminal, trace->diagnostics, arguments.operands[0]);
  if (output == "-") return kExitGood;
  for (const std::string& path : paths)
    note(*terminal,
         path + "  " + (*exporter)->name +
             (trace->cells.size() == 0 ? "" : ", " + grouped(static_cast<int64_t>(trace->cells.size())) + " cells"));
  return kExitGood;
}

}  // namespace stageline
