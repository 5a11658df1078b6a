#include "exporters/table_words.h"
#include "facts/profile_facts.h"
#include "server/page/answer_json.h"
#include "server/page/page_slices.h"

namespace stageline {
namespace {

void write_colours(JsonWriter& json, const char* theme_name, const Theme& theme, uint8_t kind) {
  const KindColours colours = view_kind_colours(theme, kind);
  json.key(theme_name).begin_object();
  json.field("fill", hex(colours.fill)).field("text", hex(colours.text)).end_object();
}

void write_kinds(JsonWriter& json, uint32_t present) {
  json.key("kinds").begin_array();
  for (uint8_t k = 0; k < kViewKindCount; ++k) {
    if ((present & uint32_t{1} << k) == 0) continue;
    const ViewKindInfo& info = view_kind_info(k);
    json.begin_object().field("id", int64_t{k}).field("code", info.code).field("name", info.name.en);
    json.field("name_zh", info.name.zh).field("group", info.group);
    write_colours(json, "light", light_theme(), k);
    write_colours(json, "dark", dark_theme(), k);
    json.end_object();
  }
  json.end_array();
}

// Where clocks are not aligned, a step of all ranks is longer than that of any: each rank has its own steps, in runs of
// usual sizes.
void write_ranks(JsonWriter& json, const Timeline& timeline) {
  const Trace& trace = timeline.trace();
  const size_t max_steps = trace.clock == ClockState::kShared ? 4096 : 65'536;  // of all ranks together
  const bool own = trace.cells.size() == 0 && trace.parts.size() * timeline.steps().size() <= max_steps;
  json.objects("ranks", trace.parts, [&](const Part& part) {
    json.field("rank", part.rank).field("machine", part.machine).field("machine_name", part.machine_name);
    json.field("device", part.device).field("stage", part.stage).field("dp", part.dp);
    json.field("offset_half_ns", trace.alignment == AlignState::kRaw ? int64_t{-1} : part.clock_map.offset_half_ns());
    if (!own || part.steps.empty()) return;
    json.key("steps").begin_array();
    const int64_t zero_ns = timeline.zero_ns(&part - trace.parts.data());
    for (const ProfilerStep& step : part.steps) {
      json.begin_array().value(step.number).value(relative_ns(step.start_ns, zero_ns));
      json.value(relative_ns(step.end_ns, zero_ns)).end_array();
    }
    json.end_array();
  });
}

// Offers the properties by which ranks can be grouped: those with at least two values.
void write_groupings(JsonWriter& json, const Trace& trace) {
  json.key("groupings").begin_array();
  const auto offer = [&](const char* name, auto value_of) {
    std::set<int32_t> values = mapped<std::set>(trace.parts, [&](const Part& part) { return value_of(part); });
    if (values.size() > 1) json.value(name);
  };
  offer("machine", [](const Part& part) { return part.machine; });
  offer("stage", [](const Part& part) { return part.stage; });
  offer("dp", [](const Part& part) { return part.dp; });
  json.end_array();
}

void write_lane(JsonWriter& json, const ViewLane& lane, int64_t id) {
  json.begin_object().field("id", id).field("rank_index", int64_t{lane.part});
  json.field("name", valid_utf8(lane.name)).field("type", lane_type_name(lane.type));
  json.field("rows", std::max<size_t>(1, lane.rows.size()));
  const size_t clipped = sum_over<size_t>(lane.rows, &ViewRow::clipped);
  json.field("hidden", lane.hidden);
  if (clipped > 0) json.field("clipped", clipped);
  json.field("slices", lane.count);
  if (lane.has_slices() && lane.lasting_rows < lane.rows.size()) json.field("lasting_rows", lane.lasting_rows);
  if (lane.repeats) json.field("repeats", true);
  json.field("start_ns", lane.start_ns).field("end_ns", lane.end_ns).end_object();
}

void write_lanes(JsonWriter& json, const Timeline& timeline, const PageLanes* page) {
  json.key("lanes").begin_array();
  int64_t id = 0;
  if (page)
    for (const uint32_t l : page->lanes) write_lane(json, timeline.lanes()[l], id++);
  else
    for (const ViewLane& lane : timeline.lanes()) write_lane(json, lane, id++);
  json.end_array();
}

void write_clock(JsonWriter& json, const Trace& trace) {
  json.key("clock").begin_object().field("state", clock_name(trace.clock));
  json.field("uncertainty_ns", trace.alignment_half_ns()).end_object();
}

// Writes what a report as one file has of its run.
void write_file(JsonWriter& json, const RunState& state) {
  json.key("file").begin_object().field("left_out", state.page->left_out).field("command", state.command);
  json.field("theory", state.shows_theory).field("what_if", state.replays);
  json.field("plan", state.planned);
  json.end_object();
}

void write_steps(JsonWriter& json, const Timeline& timeline) {
  json.objects("steps", timeline.steps(), [&](const ViewStep& step) {
    json.field("number", step.number).field("start_ns", step.start_ns).field("end_ns", step.end_ns);
    if (step.ranges > 0) json.field("mean_ns", step.sum_ns / static_cast<double>(step.ranges));
  });
}

void write_flaws(JsonWriter& json, const Diagnostics& notes) {
  json.each("flaws", notes.items(), [&](const Diagnostic& d) {
    if (d.severity == Severity::kInfo) return;
    json.begin_object().field("name", d.name).field("severity", severity_name(d.severity));
    json.field("message", d.message.en).field("count", d.count).end_object();
  });
}

bool has_flows(const Trace& trace) {
  if (!trace.links.empty()) return true;
  return std::ranges::any_of(trace.parts, [](const Part& part) {
    return !part.slice_links.empty() ||
           std::ranges::any_of(part.slices.partner, [](uint32_t partner) { return partner != kNoSliceIndex; });
  });
}

}  // namespace

std::string run_json(const Timeline& timeline, const std::string& title, const std::vector<std::string>& paths,
                     const RunState& state) {
  const Trace& trace = timeline.trace();
  JsonWriter json;
  json.begin_object().field("version", STAGELINE_VERSION).field("title", valid_utf8(title));
  json.field("revision", state.revision).field("whole", state.is_whole);
  if (!state.other.empty()) json.field("other", valid_utf8(state.other));
  json.list("paths", paths, valid_utf8);
  if (!state.places.empty()) json.list("places", state.places, valid_utf8);
  json.field("description", valid_utf8(trace.description)).field("format", trace.format);
  json.field("origin_ns", std::to_string(timeline.origin_ns())).field("span_ns", timeline.span_ns());
  json.field("slices", timeline.slice_count()).field("chunks", timeline.chunk_count());
  write_clock(json, trace);
  write_palette(json);
  write_kinds(json, timeline.kinds_present());
  write_ranks(json, timeline);
  write_groupings(json, trace);
  write_lanes(json, timeline, state.page);
  if (state.page) write_file(json, state);
  write_steps(json, timeline);
  json.field("flows", has_flows(trace)).field("calls", has_calls(trace));
  write_flaws(json, state.notes);
  write_sentences(json, {}, state.notes, 0);
  json.end_object();
  return json.take();
}

}  // namespace stageline
