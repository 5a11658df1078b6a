#include "cli/questions.h"

#include "cli/paths.h"
#include "cli/picture_flags.h"

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

Result<WhatIfQuestion> what_if_question(const Arguments& arguments) {
  WhatIfWish wish;
  wish.scales = arguments.all("scale");
  if (arguments.has("schedule")) wish.schedule = arguments.get("schedule");
  for (const auto& [flag, place] : {std::pair("micro-batches", &wish.micro_batches), std::pair("chunks", &wish.chunks),
                                    std::pair("group", &wish.group)}) {
    if (!arguments.has(flag)) continue;
    TRY(value, arguments.integer(flag, 0, 1, 65'536));
    *place = *value;
  }
  if (arguments.has("latency")) {
    if (Result<int64_t> latency = arguments.duration_ns("latency", 0); !latency) return std::move(latency).error();
    wish.latency = arguments.get("latency");
  }
  wish.layers = arguments.get("layers");
  wish.more_memory = arguments.has("more-memory");
  return what_if_question(wish);
}

}  // namespace stageline
