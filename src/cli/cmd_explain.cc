#include "cli/commands.h"
#include "cli/info_text.h"
#include "cli/model_flags.h"
#include "cli/open_run.h"
#include "cli/paths.h"
#include "diagnosis/explain_json.h"

namespace stageline {

Result<int> run_explain(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "json")
    return make_error(ErrorCode::kUsage, "explain comes as text or json, not \"" + format + "\"");
  TRY(limit, arguments.share("fail-on"));
  TRY(out, open_output(arguments.get("output", "-"), arguments.operands));
  TRY(trace, open_run(arguments, *terminal, arguments.operands, "", Clocks::kCompared));
  TRY(bytes, stage_bytes_of(arguments, *trace));
  const Explanation e = explain(Run(*trace), true, *bytes ? &**bytes : nullptr);
  out->write(format == "json" ? explain_json(e, arguments.operands) + "\n"
                              : terminal_text(explain_text(*terminal, e, arguments.operands), true));
  TRY_OK(out->commit());
  for (const Diagnostic& d : trace->diagnostics.items())
    if (d.name == "clock.aligned") note(*terminal, message_text(*terminal, d));
  print_notes(*terminal, trace->diagnostics, arguments.operands[0]);
  if (*limit && !e.why_not.empty() && e.findings.empty())
    return fail({ErrorCode::kUnavailable,
                 "--fail-on has nothing to judge: causes were not analysed",
                 {arguments.operands[0]},
                 ""});
  return *limit && e.lost_share() > **limit ? kExitFinding : kExitGood;
}

}  // namespace stageline
