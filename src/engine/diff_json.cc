#include "engine/diff_json.h"

#include "diagnosis/diff/diff_report.h"
#include "diagnosis/explain_json.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

void both(JsonWriter& json, const Text& line) { json.field("en", line.en).field("zh", line.zh); }

void write_error(JsonWriter& json, double error_ns) {
  json.maybe("error_ns", !std::isnan(error_ns), whole_ns(error_ns));
}

void write_item(JsonWriter& json, const RunDiff& diff, const DiffItem& item) {
  both(json, item_line(item));
  json.field("name", item.name.en).field("at", item.at).field("beyond_noise", item.sure);
  json.field("a_ns", whole_ns(item.a_ns)).field("b_ns", whole_ns(item.b_ns));
  json.field("effect_ns", whole_ns(item.effect_ns)).field("effect_share", share_of(item.effect_ns, diff.a.step_ns));
  write_error(json, item.error_ns);
  write_places(json, "places", item.places);
}

void write_change(JsonWriter& json, const RunDiff& diff, const DiffGroup& group, int64_t effect_ns) {
  both(json, group_line(diff, group));
  json.field("effect_ns", effect_ns).field("effect_share", share_of(group.effect_ns, diff.a.step_ns));
  write_error(json, group.error_ns);
  json.field("cause", cause_id(group.cause));
  json.field("kind", group.cause == DiffCause::kCompute ? std::string(kind_code(group.kind)) : group.type);
  write_places(json, "places", places_of(group));
  json.objects("behind", group.behind, [&](const DiffItem& item) { write_item(json, diff, item); });
}

}  // namespace

std::string diff_json(const RunDiff& diff) {
  JsonWriter json;
  json.begin_object();
  json.field("change_ns", whole_ns(diff.change_ns));
  write_error(json, diff.error_ns);
  json.field("change_share", share_of(diff.change_ns, diff.a.step_ns));
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
    const int64_t effect_ns = &group == &reported.back() ? left : whole_ns(group.effect_ns);
    if (effect_ns != kNullInteger) left = sum_or_limit(left, -effect_ns);
    write_change(json, diff, group, effect_ns);
  });
  json.each("tables", diff_tables(diff), [&](const Table& table) { append_table_json(json, table); });
  return json.end_object().take();
}

}  // namespace stageline
