#include "engine/diff_json.h"

#include <cmath>

#include "base/json_writer.h"
#include "base/number.h"
#include "diagnosis/diff/diff_report.h"
#include "diagnosis/explain_json.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

// Writes both languages and leaves the object open.
void both(JsonWriter& json, const Text& line) { json.begin_object().field("en", line.en).field("zh", line.zh); }

}  // namespace

std::string diff_json(const RunDiff& diff) {
  JsonWriter json;
  json.begin_object();
  json.field("change_ns", whole_ns(diff.change_ns));
  json.key("error_ns");
  std::isnan(diff.error_ns) ? json.null() : json.value(std::llround(diff.error_ns));
  json.field("change_share", diff.a.step_ns > 0 ? diff.change_ns / diff.a.step_ns : std::nan(""));
  json.field("beyond_noise", diff.sure).field("profile", diff.a.profile);
  const Text head = headline(diff), cause = main_cause(diff), each = per_micro_batch(diff);
  json.field("headline_en", head.en).field("headline_zh", head.zh);
  json.field("cause_en", cause.en).field("cause_zh", cause.zh);
  json.field("per_micro_batch_en", each.en).field("per_micro_batch_zh", each.zh);
  json.key("differences").begin_array();
  for (const Text& change : diff.changes) both(json, change), json.end_object();
  json.end_array();
  json.field("matched", diff.matched).field("unmatched", diff.unmatched).field("unused", diff.unused);
  json.key("runs").begin_array();
  for (const DiffRun* run : {&diff.a, &diff.b}) both(json, run_line(*run)), json.end_object();
  json.end_array().key("changes").begin_array();
  // Rounded rows must add up to the rounded change, so the last row (the rest) takes what rounding leaves.
  const std::vector<DiffGroup> reported = merged_groups(diff);
  int64_t left = whole_ns(diff.change_ns);
  for (const DiffGroup& group : reported) {
    both(json, group_line(diff, group));
    const int64_t effect = &group == &reported.back() ? left : whole_ns(group.effect_ns);
    if (effect != kNullInteger) left = sum_or_limit(left, -effect);
    json.field("effect_ns", effect);
    json.field("effect_share", diff.a.step_ns > 0 ? group.effect_ns / diff.a.step_ns : std::nan(""));
    json.key("error_ns");
    std::isnan(group.error_ns) ? json.null() : json.value(whole_ns(group.error_ns));
    json.field("cause", cause_id(group.cause));
    json.field("kind", group.cause == DiffCause::kCompute ? std::string(kind_code(group.kind)) : group.type);
    json.key("places").begin_array();
    for (const Place& place : places_of(group)) write_place(json, place);
    json.end_array().key("behind").begin_array();
    for (const DiffItem& item : group.behind) {
      both(json, item_line(item));
      json.field("name", item.name.en).field("at", item.at).field("beyond_noise", item.sure);
      for (const auto& [name, ns] : {std::pair{"a_ns", item.a_ns}, {"b_ns", item.b_ns}, {"effect_ns", item.effect_ns}})
        json.field(name, whole_ns(ns));
      json.field("effect_share", diff.a.step_ns > 0 ? item.effect_ns / diff.a.step_ns : std::nan(""));
      json.key("error_ns");
      std::isnan(item.error_ns) ? json.null() : json.value(whole_ns(item.error_ns));
      json.key("places").begin_array();
      for (const Place& place : item.places) write_place(json, place);
      json.end_array().end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().key("tables").begin_array();
  for (const Table& table : diff_tables(diff)) append_table_json(json, table);
  json.end_array().end_object();
  return json.take();
}

}  // namespace stageline
