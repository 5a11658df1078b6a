#include "diagnosis/explain_json.h"

namespace stageline {
namespace {

void parts_json(JsonWriter& json, const char* key, const std::vector<SpanPart>& parts) {
  json.objects(key, parts, [&](const SpanPart& part) {
    json.field("id", part.id).field("label", part.label).field("share", part.share);
  });
}

// Figures that findings quote, besides what they cost and save (docs/figures.md).
constexpr std::pair<std::string_view, std::string_view> kQuoted[] = {
    {"comm.exposed", "comm_exposed"}, {"comm.exposed", "comm_hidden"}, {"memory.exposed", "copies_exposed"}};

}  // namespace

FindingEvidence evidence_of(const Finding& finding) {
  static const std::map<std::string_view, FindingEvidence> usual = {
#define FINDING(id, ...) {id, {__VA_ARGS__}},
#include "model/findings.def"
  };
  const auto found = usual.find(finding.id);
  return !finding.evidence.analysis.empty() || found == usual.end() ? finding.evidence : found->second;
}

void write_place(JsonWriter& json, const Place& place) {
  const auto number = [&](const char* name, int32_t value) {
    if (value != kUnknown) json.field(name, value);
  };
  json.begin_object().field("kind", place_kind_name(place.kind));
  // Ranks and hosts are known by their numbers alone.
  const bool of_ranks = place.kind == PlaceKind::kRanks || place.kind == PlaceKind::kHost;
  number("from_stage", place.from_stage);
  if (!of_ranks) number("stage", place.stage), number("chunk", place.chunk), number("replica", place.replica);
  if (place.both_ways) json.field("both_ways", true);
  number("first", place.first);
  number("last", place.last);
  if (place.cells != CellKind::kOther) json.field("cells", kind_code(place.cells));
  if (!place.name.empty()) json.field("name", place.name);
  if (!place.ranks.empty()) json.list("ranks", place.ranks);
  json.end_object();
}

void write_places(JsonWriter& json, const char* key, const std::vector<Place>& places) {
  json.each(key, places, [&](const Place& place) { write_place(json, place); });
}

void write_finding(JsonWriter& json, const Finding& f, double step_ns, const std::vector<std::string>& paths,
                   size_t number) {
  const auto whole = [](double ns) { return static_cast<int64_t>(std::llround(ns)); };
  json.begin_object().field("id", f.id);
  write_places(json, "places", f.places);
  write_places(json, "or_else", f.or_else);
  json.field("key", key_of(f)).field("priced", f.price.saving_ns > 0);
  json.field("lost_ns", cost_ns(f)).field("uncertainty_ns", cost_error_ns(f));
  json.field("lost_share", !f.is_time ? std::nan("") : step_ns > 0 ? f.lost_ns_per_step / step_ns : f.weight);
  json.field("saving_ns", whole(f.price.saving_ns));
  json.field("saving_share", step_ns > 0 ? f.price.saving_ns / step_ns : 0.0);
  json.field("value", f.value).field("note", f.value_note).field("title", f.title).field("detail", f.detail);
  json.field("fix", f.price.fix).field("assumption", f.price.assumption);
  json.maybe("step", f.step.has_value(), f.step.value_or(0)).maybe("rank", f.rank.has_value(), f.rank.value_or(0));
  json.key("figures").begin_array();
  const std::string prefix = "finding." + std::to_string(number) + ".";
  if (number > 0 && f.is_time) json.value(prefix + "lost");
  if (number > 0 && f.price.saving_ns > 0) json.value(prefix + "saving");
  for (const auto& [id, name] : kQuoted)
    if (id == f.id) json.value(name);
  json.end_array();
  const FindingEvidence evidence = evidence_of(f);
  json.field("analysis", evidence.analysis).field("table", evidence.table).field("command", finding_command(f, paths));
  json.end_object();
}

std::string finding_command(const Finding& f, const std::vector<std::string>& paths) {
  if (!f.price.command.empty()) return f.price.command;
  if (f.evidence.analysis.empty()) return "";
  std::string command = "stageline analyze " + f.evidence.analysis + shell_words(paths);
  if (!f.evidence.table.empty()) command += " --table " + f.evidence.table;
  return command;
}

Text closing_words(const Explanation& e) {
  if (!e.why_not.empty()) return words(e.unpriced ? "closing.unpriced" : "closing.not_analysed");
  if (!e.headline.closing.empty()) return e.headline.closing;
  const bool any = !e.findings.empty();
  const Text quiet = any || e.part_read || much_is_left(e.account, e.step_ns) ? Text() : quiet_title(e);
  const Text limits = any || e.part_read ? Text() : quiet_limits(e);
  Args args;
  args.flag("any", any).set("next", e.next).set("sum", e.account.sum).set("quiet", quiet).set("limits", limits);
  args.set("before", quiet.empty() ? limits : words("closing.quiet", args));
  const auto closed = [&](Text text) {
    return any || e.bubble.empty() ? text : joined({std::move(text), e.bubble}, {" ", ""});
  };
  if (!e.doubt.empty()) {
    std::vector<Text> parts = {words("closing.unsure", args), e.doubt};
    for (const Text& more : {e.account.sum, e.next})
      if (!more.empty()) parts.push_back(more);
    return closed(joined(parts, {" ", ""}));
  }
  if (!e.account.sum.empty()) return closed(words("closing.sum", args));
  if (e.part_read) return closed(words("closing.part", args));
  return closed(words(any ? "closing.small" : "closing.nothing", args));
}

std::string explain_json(const Explanation& e, const std::vector<std::string>& paths) {
  JsonWriter json;
  json.begin_object().field("run", e.run);
  json.field("steps", e.steps).field("step_ns", std::llround(e.step_ns));
  json.field("period_ns", std::llround(e.wall_ns)).field("gap_ns", std::llround(e.gap_ns));
  json.field("lost_ns", std::llround(e.lost_ns)).field("lost_share", e.lost_share());
  json.field("note", e.note).field("why_not", e.why_not).field("title", e.headline.title);
  json.field("closing", closing_words(e)).field("lead", e.headline.lead);
  parts_json(json, "parts", e.parts);
  parts_json(json, "device_parts", e.headline.device_parts);
  parts_json(json, "host_parts", e.headline.host_parts);
  json.objects("account", e.account.parts, [&](const AccountPart& part) {
    json.field("id", part.id).field("name", part.name).field("label", part.label);
    json.field("ns", std::llround(part.ns)).field("share", e.step_ns > 0 ? part.ns / e.step_ns : 0.0);
  });
  size_t number = 0;
  json.each("findings", e.findings, [&](const Finding& f) { write_finding(json, f, e.step_ns, paths, ++number); });
  json.each("offers", e.offers, [&](const Finding& f) { write_finding(json, f, e.step_ns, paths); });
  return json.end_object().take();
}

}  // namespace stageline
