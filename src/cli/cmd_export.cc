#include "cli/commands.h"
#include "cli/paths.h"
#include "cli/questions.h"
#include "server/page/page_file.h"

namespace stageline {

Result<int> run_export(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string output = arguments.get("output");
  if (output.empty())
    return make_error(ErrorCode::kUsage, "export needs to know where to write",
                      "stageline export PATH… -o pipeline.pftrace; -o - is stdout");
  TRY(ask, export_question(arguments, terminal->lang));
  TRY_OK(check_writable(output, arguments.operands));
  TRY(trace, open_run(arguments, *terminal, arguments.operands, ask->exporter->compat, ask->clocks));
  std::vector<std::string> paths;
  Diagnostics notes = trace->diagnostics;
  const Status written = [&] {
    const WritingBar bar(*terminal);
    return export_run(std::make_shared<const Run>(*trace), notes, output, ask->exporter->name, ask->options,
                      arguments.operands, &paths);
  }();
  if (!written) return std::move(written).error();
  print_notes(*terminal, notes, arguments.operands[0]);
  if (output == "-") return kExitGood;
  const bool draws = std::ranges::count(std::array{"svg", "png", "pdf"}, std::string_view(ask->exporter->name)) > 0;
  const std::string no_pipeline = draws ? ", devices and hosts: no pipeline was found in this trace" : "";
  for (const std::string& path : paths)
    note(*terminal, path + "  " + ask->exporter->name +
                        (trace->cells.size() > 0 ? ", " + grouped(trace->cells.size()) + " cells" : no_pipeline));
  return kExitGood;
}

}  // namespace stageline
