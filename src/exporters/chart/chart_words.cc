#include "exporters/chart/chart_words.h"

#include <string_view>

#include "base/number.h"
#include "model/cells.h"

namespace stageline {

ChartLang chart_lang(const std::string& name) {
  return std::string_view(name).starts_with("zh") ? ChartLang::kChinese : ChartLang::kEnglish;
}

std::string chart_word(ChartLang lang, std::string_view name, const Args& args) {
  return words("chart." + std::string(name), args).in(lang == ChartLang::kChinese);
}
std::string chart_number(ChartLang lang, std::string_view name, int32_t number) {
  return chart_word(lang, name, Args().set("n", int64_t{number}));
}
std::string chart_count(ChartLang lang, std::string_view name, int64_t count) {
  return chart_word(lang, name, Args().count("n", count));
}
std::string chart_replica(ChartLang lang, const Trace& trace, int32_t dp) {
  return chart_number(lang, trace.context_parallel > 1 ? "pipeline" : "replica", dp);
}

std::string chart_kind(ChartLang lang, CellKind kind) {
  const std::string own = "chart.kind." + std::string(is_message(kind) ? "message" : kind_code(kind));
  const Text text = words(has_words(own) ? own : "kind." + std::string(kind_code(kind)));
  return text.in(lang == ChartLang::kChinese);
}

std::string chart_ghost(ChartLang lang, const std::string& schedule) {
  return chart_word(lang, "ghost", Args().set("schedule", schedule));
}

std::string chart_title(ChartLang lang, int32_t first_step, int32_t last_step) {
  if (first_step == kUnknown) return chart_word(lang, "title");
  const Args args = Args().set("first", int64_t{first_step}).set("last", int64_t{last_step});
  return chart_word(lang, first_step == last_step ? "title.step" : "title.steps", args);
}

std::string chart_clocks_aligned(ChartLang lang, const ClockSummary& clocks) {
  Args args;
  args.set("by", evidence_list(clocks.by)).set("error", clocks.error_ns < 0 ? "" : human_duration(clocks.error_ns));
  args.set("half", clocks.half_ns < 0 ? "" : human_duration(clocks.half_ns));
  const Args unaligned = Args().count("n", std::ssize(clocks.untied));
  args.set("unaligned", clocks.untied.empty() ? Text{} : words("chart.clocks.unaligned_ranks", unaligned));
  return chart_word(lang, "clocks.aligned", args);
}

}  // namespace stageline
