// Writes what was found in a trace, for programs: `stageline info --json`.
#include "engine/engine.h"
#include "model/pipeline_words.h"
#include "model/torch_facts.h"
#include "pipeline/order/recognise.h"

namespace stageline {
namespace {

void recognition_field(const Trace& trace, JsonWriter& json) {
  const Recognition r = recognise(trace);
  json.key("schedule");
  if (r.candidates.empty()) {
    json.null();
    return;
  }
  const ScheduleCandidate& best = r.best();
  json.begin_object().maybe("name", r.recognised, best.name);
  json.field("nearest", best.name).field("score", best.score).field("order_score", best.order_score);
  json.field("stages", best.sizes.stages).field("micro_batches", best.sizes.micro_batches);
  json.field("chunks", best.sizes.chunks).field("layout", layout_name(best.layout));
  json.field("equal_lists", best.equal_lists).field("lists", r.lists).list("same_as", r.same_as);
  json.key("second");
  if (r.candidates.size() > 1) {
    json.begin_object();
    json.field("name", r.candidates[1].name).field("score", r.candidates[1].score);
    json.field("order_score", r.candidates[1].order_score).end_object();
  } else {
    json.null();
  }
  json.end_object();
}

// Writes the keys that only pipeline cells can answer. With `beside_slices`, slices and the whole time are written by
// slice_fields().
void cell_fields(const Trace& trace, bool beside_slices, JsonWriter& json) {
  const Extent extent = extent_of(trace);
  json.field("stages", extent.stage_count).field("replicas", replica_count(trace, extent.dp_count));
  json.field("context_parallel", trace.context_parallel).field("chunks", extent.chunk_count);
  json.field("micro_batches", micro_batches_per_step(trace)).field("steps", extent.step_count);
  recognition_field(trace, json);
  json.field("cells", trace.cells.size());
  if (beside_slices) return;
  json.field("slices", trace.slice_count()).field("start_ns", extent.start_ns).field("end_ns", extent.end_ns);
}

// With `with_cells`, pipeline cells were found in the slices, and their fields have been written already.
void slice_fields(const Trace& trace, bool with_cells, JsonWriter& json) {
  const SliceCounts counts = count_slices(trace);
  if (!with_cells) {
    for (const char* key : {"stages", "replicas", "context_parallel", "chunks", "micro_batches", "schedule"})
      json.key(key).null();
    json.field("steps", counts.steps.size());
  }
  json.list("step_numbers", counts.steps);
  if (!with_cells) json.field("cells", int64_t{0});
  json.field("events", counts.events).field("slices", counts.slices);
  json.key("slices_by_kind").begin_object();
  for (size_t c = 0; c < kCategoryCount; ++c)
    if (counts.by_category[c] > 0) json.field(category_label(static_cast<Category>(c)), counts.by_category[c]);
  json.end_object();
  json.field("message_kernels", counts.message_kernels).field("collective_kernels", counts.collective_kernels);
  json.field("instants", counts.marks).field("memory_events", counts.memory);
  json.field("counter_values", counts.counter_values).field("arrows", counts.links);
  json.field("device_streams", counts.device_streams).field("start_ns", counts.start_ns);
  json.field("end_ns", counts.end_ns);
  json.objects("parts", counts.parts, [&](size_t p) {
    const Part& part = trace.parts[p];
    json.field("rank", part.rank).field("host", part.machine_name);
    json.maybe("device", part.device != kUnknown, part.device).field("device_name", device_name(part));
    json.field("torch", torch_era(trace, part)).field("slices", part.slices.size());
    json.list("files", part.files, &SourceRef::path);
  });
}

}  // namespace

std::string info_json(const Trace& trace) {
  const bool with_cells = trace.cells.size() > 0;
  const bool by_slices = (!with_cells && trace.slice_count() > 0) ||
                         std::ranges::any_of(trace.parts, [](const Part& part) { return part.event_count > 0; });
  JsonWriter json;
  json.begin_object();
  json.field("format", trace.format).field("description", trace.description);
  json.field("machines", trace.machine_count()).field("ranks", trace.parts.size());
  if (with_cells || !by_slices) cell_fields(trace, by_slices, json);
  if (by_slices) slice_fields(trace, with_cells, json);
  json.field("clock", clock_name(trace.clock));
  json.objects("diagnostics", trace.diagnostics.items(), [&](const Diagnostic& d) {
    json.field("name", d.name).field("severity", severity_name(d.severity)).field("count", d.count);
    json.field("file", d.first.file).maybe("line", d.first.line > 0, d.first.line);
    json.maybe("byte", d.first.byte >= 0, d.first.byte).field("message", d.message.en);
  });
  return json.end_object().take();
}

}  // namespace stageline
