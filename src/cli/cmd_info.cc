#include "base/output_file.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "cli/info_text.h"
#include "cli/run_common.h"

namespace stageline {

int run_info(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "json")
    return fail({ErrorCode::kUsage, "info comes as text or json, not \"" + format + "\"", {}, ""});
  Result<OutputFile> out = open_output(arguments.get("output", "-"), arguments.operands);
  if (!out) return fail(out.error());
  Result<Trace> trace = open_run(arguments, *terminal, arguments.operands);
  if (!trace) return fail(trace.error());
  out->write(format == "json" ? info_json(*trace) + "\n" : terminal_text(info_text(*trace), true));
  if (Status s = out->commit(); !s) return fail(s.error());
  return kExitGood;
}

}  // namespace stageline
