#include "cli/commands.h"
#include "cli/info_text.h"
#include "cli/open_run.h"
#include "cli/paths.h"

namespace stageline {

Result<int> run_info(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "json")
    return make_error(ErrorCode::kUsage, "info comes as text or json, not \"" + format + "\"");
  TRY(out, open_output(arguments.get("output", "-"), arguments.operands));
  const bool figures = arguments.has("figures");
  const std::string asked = arguments.get("figures");
  std::vector<std::string> names;
  for (const std::string_view name : split(asked, ','))
    if (!name.empty() && name != "all") names.emplace_back(name);
  for (const std::string& name : names) TRY_OK(check_figure(name));
  TRY(trace, open_run(arguments, *terminal, arguments.operands, "", figures ? Clocks::kCompared : Clocks::kRaw));
  if (figures) {
    TRY(found, figures_of(std::make_shared<const Run>(*trace), names));
    out->write(format == "json" ? "{\"figures\":" + figures_json(*found) + "}\n"
                                : terminal_text(figures_text(*terminal, *found), true));
    TRY_OK(out->commit());
    return kExitGood;
  }
  out->write(format == "json" ? info_json(*trace) + "\n" : terminal_text(info_text(*trace), true));
  TRY_OK(out->commit());
  return kExitGood;
}

}  // namespace stageline
