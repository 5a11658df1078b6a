#include "base/output_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/info_text.h"
#include "cli/run_common.h"
#include "engine/figures/figures.h"

namespace stageline {

int run_info(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "json")
    return fail(make_error(ErrorCode::kUsage, "info comes as text or json, not \"" + format + "\""));
  Result<OutputFile> out = open_output(arguments.get("output", "-"), arguments.operands);
  if (!out) return fail(out.error());
  const bool figures = arguments.has("figures");
  const std::string asked = arguments.get("figures");
  std::vector<std::string> names;
  for (const std::string_view name : split(asked, ','))
    if (!name.empty() && name != "all") names.emplace_back(name);
  for (const std::string& name : names)
    if (const Status known = check_figure(name); !known) return fail(known.error());
  Result<Trace> trace =
      open_run(arguments, *terminal, arguments.operands, "", figures ? Clocks::kCompared : Clocks::kRaw);
  if (!trace) return fail(trace.error());
  if (figures) {
    const auto found = figures_of(std::make_shared<const Run>(*trace), names);
    if (!found) return fail(found.error());
    out->write(format == "json" ? "{\"figures\":" + figures_json(*found) + "}\n"
                                : terminal_text(figures_text(*terminal, *found), true));
    if (Status s = out->commit(); !s) return fail(s.error());
    return kExitGood;
  }
  out->write(format == "json" ? info_json(*trace) + "\n" : terminal_text(info_text(*trace), true));
  if (Status s = out->commit(); !s) return fail(s.error());
  return kExitGood;
}

}  // namespace stageline
