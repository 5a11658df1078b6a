#include "cli/export_question.h"

#include "base/text.h"

namespace stageline {

Result<ExportQuestion> export_question(const Arguments& arguments, const std::string& lang) {
  TRY(exporter, choose_exporter(arguments.get("to"), arguments.get("output")));
  ExportQuestion question;
  question.exporter = *exporter;
  ExportOptions& options = question.options;
  options.lang = lang;
  options.dark = arguments.has("dark");
  options.ghosts = ghosts_of(arguments);
  options.title = valid_utf8(arguments.get("title", run_name(arguments.operands)));
  TRY(width, arguments.real("width", 0));
  if (arguments.has("width") && !(*width >= 200 && *width <= 32'000))
    return make_error(ErrorCode::kUsage, "--width is 200 to 32000 pixels");
  options.width_px = *width;
  options.hta = arguments.has("compat");
  question.clocks = (*exporter)->one_axis       ? Clocks::kOneAxis
                    : (*exporter)->needs_tables ? Clocks::kCompared
                                                : Clocks::kRaw;
  return question;
}

}  // namespace stageline
