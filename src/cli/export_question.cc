#include "cli/export_question.h"

namespace stageline {

Result<ExportQuestion> export_question(const Arguments& arguments, const std::string& lang) {
  TRY(exporter, choose_exporter(arguments.get("to"), arguments.get("output")));
  ExportQuestion question;
  question.exporter = *exporter;
  ExportOptions& options = question.options;
  TRY_OK(take(picture_options(arguments, lang, run_name(arguments.operands)), options));
  options.ghosts = ghosts_of(arguments);
  options.hta = arguments.has("compat");
  question.clocks = (*exporter)->one_axis       ? Clocks::kOneAxis
                    : (*exporter)->needs_tables ? Clocks::kCompared
                                                : Clocks::kRaw;
  return question;
}

}  // namespace stageline
