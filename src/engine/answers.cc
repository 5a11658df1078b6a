#include "engine/answers.h"

#include "base/error_words.h"
#include "base/json_writer.h"
#include "diagnosis/diff/diff_report.h"
#include "diagnosis/explain_json.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

void both(JsonWriter& json, const Text& line) { json.field("en", line.en).field("zh", line.zh); }

}  // namespace

std::string diff_json(const RunDiff& diff) {
  JsonWriter json;
  json.begin_object();
  json.field("change_ns", whole_ns(diff.change_ns));
  json.maybe("error_ns", !std::isnan(diff.error_ns), whole_ns(diff.error_ns));
  json.field("change_share", diff.a.step_ns > 0 ? diff.change_ns / diff.a.step_ns : std::nan(""));
  json.field("beyond_noise", diff.sure).field("profile", diff.a.profile);
  const Text head = headline(diff), cause = main_cause(diff), each = per_micro_batch(diff);
  json.field("headline_en", head.en).field("headline_zh", head.zh);
  json.field("cause_en", cause.en).field("cause_zh", cause.zh);
  json.field("per_micro_batch_en", each.en).field("per_micro_batch_zh", each.zh);
  json.objects("differences", diff.changes, [&](const Text& change) { both(json, change); });
  json.field("matched", diff.matched).field("unmatched", diff.unmatched).field("unused", diff.unused);
  json.objects("runs", std::array{&diff.a, &diff.b}, [&](const DiffRun* run) { both(json, run_line(*run)); });
  // Rounded rows must add up to the rounded change, so the last row (the rest) takes what rounding leaves.
  const std::vector<DiffGroup> reported = merged_groups(diff);
  int64_t left = whole_ns(diff.change_ns);
  json.objects("changes", reported, [&](const DiffGroup& group) {
    both(json, group_line(diff, group));
    const int64_t effect = &group == &reported.back() ? left : whole_ns(group.effect_ns);
    if (effect != kNullInteger) left = sum_or_limit(left, -effect);
    json.field("effect_ns", effect);
    json.field("effect_share", diff.a.step_ns > 0 ? group.effect_ns / diff.a.step_ns : std::nan(""));
    json.maybe("error_ns", !std::isnan(group.error_ns), whole_ns(group.error_ns));
    json.field("cause", cause_id(group.cause));
    json.field("kind", group.cause == DiffCause::kCompute ? std::string(kind_code(group.kind)) : group.type);
    write_places(json, "places", places_of(group));
    json.objects("behind", group.behind, [&](const DiffItem& item) {
      both(json, item_line(item));
      json.field("name", item.name.en).field("at", item.at).field("beyond_noise", item.sure);
      for (const auto& [name, ns] : {std::pair{"a_ns", item.a_ns}, {"b_ns", item.b_ns}, {"effect_ns", item.effect_ns}})
        json.field(name, whole_ns(ns));
      json.field("effect_share", diff.a.step_ns > 0 ? item.effect_ns / diff.a.step_ns : std::nan(""));
      json.maybe("error_ns", !std::isnan(item.error_ns), whole_ns(item.error_ns));
      write_places(json, "places", item.places);
    });
  });
  json.each("tables", diff_tables(diff), [&](const Table& table) { append_table_json(json, table); });
  return json.end_object().take();
}

Result<MeanStep> mean_step_of(const Explanation& explanation, const std::string& path) {
  for (const MeanStep& step : {MeanStep{explanation.steps, explanation.step_ns},
                               MeanStep{explanation.headline.steps, explanation.headline.step_ns}})
    if (step.steps > 0 && step.ns > 0) return step;
  return worded_error(ErrorCode::kUnavailable, "refused.no_steps", {}, {path});
}

}  // namespace stageline
