#include "base/output_file.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "cli/plan_picture.h"
#include "cli/plan_question.h"
#include "cli/run_common.h"
#include "exporters/table_text.h"
#include "plan/emit.h"

namespace stageline {

Result<int> run_plan(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  const std::string output = arguments.get("output", "-");
  TRY_OK(check_writable(output, arguments.operands));
  const bool draws = !picture_kind(arguments).empty();
  if (draws && (arguments.has("json") || arguments.has("format") || arguments.has("emit")))
    return make_error(ErrorCode::kUsage, "a picture has no --format and no --emit", "name the file for what is in it");
  Arguments asked = arguments;
  if (draws) asked.set("pareto", "");
  TRY(answer, answer_plan(asked, *terminal));
  if (draws && (!answer->found.plans.empty() || answer->found.shortfall)) {
    TRY_OK(draw_plan(*answer, arguments, *terminal));
    note(*terminal, output + "  " + plan_headline(*answer).in(terminal->chinese()));
    return answer->found.plans.empty() ? kExitFinding : kExitGood;
  }
  if (draws) return make_error(ErrorCode::kUnavailable, "there is no plan to draw: no layout of these devices fits");
  std::string text;
  if (arguments.has("emit") && !answer->found.plans.empty()) {
    TRY_OK(take(plan::emit_plan(arguments.get("emit"), answer->wish, answer->found.plans.front()), text));
  } else if (format == "json") {
    text = plan_json(*answer);
  } else if (format == "csv") {
    const std::vector<Table> tables = plan_tables(*answer);
    text = format_table_csv(answer->found.plans.empty() ? Table(declared_table("plan/plans")) : tables[0]);
  } else {
    text = terminal_text(plan_text(*answer, *terminal), true);
  }
  TRY(out, open_output(output, arguments.operands));
  out->write(text);
  TRY_OK(out->commit());
  return answer->found.plans.empty() ? kExitFinding : kExitGood;
}

}  // namespace stageline
