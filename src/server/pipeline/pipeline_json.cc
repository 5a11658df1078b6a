#include "server/pipeline/pipeline_json.h"

#include "base/json_writer.h"
#include "model/palette_json.h"

namespace stageline {
namespace {

void write_parts(JsonWriter& json, const Trace& trace, const CellPayload& payload) {
  json.key("parts").begin_array();
  for (size_t i = 0; i < trace.parts.size(); ++i) {
    const Part& part = trace.parts[i];
    json.begin_object().field("rank", part.rank).field("stage", part.stage).field("dp", part.dp);
    json.field("machine", part.machine).field("device", part.device);
    json.field("machineName", part.machine_name).field("source", part.source);
    json.field("zero", std::to_string(payload.part_zero_ns[i])).end_object();
  }
  json.end_array();
}

// Writes the steps whose cells may be included; ends count from the zero that all parts share.
void write_theory(JsonWriter& json, const Theory& theory, const CellPayload& payload) {
  json.key("theory").begin_object().field("schedule", theory.schedule).field("byRank", theory.by_rank);
  json.list("outliers", theory.outliers).key("steps").begin_array();
  for (const TheoryStep& step : theory.steps) {
    if (theory.by_rank || payload.part_zero_ns.empty()) break;
    if (!payload.has_step(step.step)) continue;
    json.begin_array().value(int64_t{step.step}).value(int64_t{step.dp});
    json.value(step.end_ns - payload.part_zero_ns.front()).end_array();
  }
  json.end_array().end_object();
}

void write_cells(JsonWriter& json, const Trace& trace, const CellPayload& payload) {
  json.key("cells").begin_object();
  json.field("count", payload.cell_count);
  json.field("total", trace.cells.size());
  const std::vector<StepRange> steps = step_ranges(trace.cells);
  json.field("steps", steps.size());
  if (payload.cell_count < trace.cells.size())
    json.each("leftOut", steps, [&](const StepRange& range) {
      if (range.step != kUnknown && !payload.has_step(range.step)) json.value(range.step);
    });
  json.objects("columns", payload.columns, [&](const PayloadColumn& column) {
    json.field("name", column.name).field("type", column.type);
    json.field("offset", column.offset_bytes).field("count", column.count);
  });
  json.list("names", payload.names).end_object();
}

}  // namespace

std::string pipeline_json(const Trace& trace, const Theory& theory, const CellPayload& payload) {
  JsonWriter json;
  json.begin_object();
  if (trace.context_parallel > 1) json.field("contextParallel", trace.context_parallel);
  write_palette(json);
  write_parts(json, trace, payload);
  write_cells(json, trace, payload);
  if (theory.known()) write_theory(json, theory, payload);
  json.end_object();
  return json.take();
}

}  // namespace stageline
