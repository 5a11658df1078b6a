#include "server/pipeline/pipeline_view.h"

#include "model/run_extent.h"
#include "pipeline/measure/waterfall.h"
#include "server/http/wire.h"
#include "server/pipeline/cell_payload.h"
#include "server/timeline/timeline.h"

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

// Returns the data of a run for the pipeline page besides its cells, and where each column is in the payload, as one
// JSON object. web/src/data/report.ts declares the same shape. `theory` may be unknown.
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

Error no_cells() {
  return make_error(
      ErrorCode::kUnavailable, "this run holds no pipeline cells",
      "docs/formats says how cells are found; a profiler trace needs ranges or names that tell forward from "
      "backward");
}

// Writes for each part the timeline's time from which its cells' starts count; 0 without a timeline.
void write_shifts(JsonWriter& json, const Timeline* timeline, const CellPayload& payload) {
  std::vector<int64_t> shift(payload.part_zero_ns.size(), 0);
  std::vector<uint8_t> known(shift.size(), 0);
  if (timeline)
    for (const ViewLane& lane : timeline->lanes())
      if (!known[lane.part]) {
        known[lane.part] = 1;
        shift[lane.part] = relative_ns(payload.part_zero_ns[lane.part], lane.zero_ns);
      }
  json.list("shift_ns", shift);
}

constexpr const char* kPartNames[] = {"schedule", "imbalance", "jitter", "latency", "rest"};  // kSchedule … kRest

// A rank in a step of the payload: its work and its waits, which add up to its pipeline's span. They include all
// bubbles, also those without a stretch of time.
using RankParts =
    std::map<std::pair<int32_t, int32_t>, std::array<double, kPipelineParts>>;  // (step, part): busy, parts
void add_rank_sums(WireColumns& columns, const Trace& trace, const Waterfall& waterfall, RankParts sums) {
  std::map<std::pair<int32_t, int32_t>, double> span_ns;  // (step, replica)
  for (const WaterfallStep& step : waterfall.steps) span_ns[{step.step, step.dp}] = step.pipeline_ns;
  std::vector<int32_t> step, part;
  std::array<std::vector<double>, kPipelineParts> ns;
  for (auto& [key, sum] : sums) {
    const auto span = span_ns.find({key.first, trace.parts[key.second].dp});
    if (span == span_ns.end()) continue;
    sum[0] = std::max(0.0, span->second - std::accumulate(sum.begin() + 1, sum.end(), 0.0));
    step.push_back(key.first);
    part.push_back(key.second);
    for (size_t k = 0; k < ns.size(); ++k) ns[k].push_back(sum[k]);
  }
  columns.add("sum_step", "i32", step);
  columns.add("sum_part", "i32", part);
  columns.add("sum_busy", "f64", ns[0]);
  for (size_t k = 1; k < ns.size(); ++k) columns.add(std::string("sum_") + kPartNames[k - 1], "f64", ns[k]);
}

// Adds where ranks wait and why, on the same axis as their cells.
void add_bubbles(WireColumns& columns, const Trace& trace, const TheoryRun& theory, const PipelineSums& sums,
                 const CellPayload& payload) {
  RankParts of_ranks;
  std::vector<double> start, dur;
  std::vector<int32_t> step, part;
  std::array<std::vector<float>, kPipelineParts - 1> ns;
  const TakeBubbles take = [&](const std::vector<WaterfallBubble>& bubbles) {
    for (const WaterfallBubble& b : bubbles) {
      auto& sum = of_ranks[{b.step, b.part}];
      for (size_t k = 0; k < b.part_ns.size(); ++k) sum[k + 1] += b.part_ns[k];
      if (b.end_ns <= b.start_ns) continue;
      start.push_back(b.start_ns - payload.part_zero_ns[b.part]);
      dur.push_back(b.end_ns - b.start_ns);
      step.push_back(b.step);
      part.push_back(b.part);
      for (size_t k = 0; k < ns.size(); ++k) ns[k].push_back(b.part_ns[k]);
    }
  };
  const Waterfall waterfall =
      waterfall_of(trace, theory, sums, take, [&](int32_t number) { return payload.has_step(number); });
  add_rank_sums(columns, trace, waterfall, std::move(of_ranks));
  columns.add("bubble_start", "f64", start);
  columns.add("bubble_dur", "f64", dur);
  columns.add("bubble_step", "i32", step);
  columns.add("bubble_part", "i32", part);
  for (size_t k = 0; k < ns.size(); ++k) columns.add(std::string("bubble_") + kPartNames[k], "f32", ns[k]);
}

// Returns true if the page draws the ranks of a stage in one row (hasMany() in web/src/chart/layout.ts).
bool has_many_ranks(const Trace& trace) {
  std::map<int32_t, size_t> ranks;  // of a stage
  for (const Part& part : trace.parts)
    if (part.stage != kUnknown && ++ranks[part.stage] > kManyRanks) return true;
  return false;
}

std::vector<StepRange> steps_of_page(const PipelineView& view, const std::vector<int32_t>& asked) {
  const Trace& trace = view.trace();
  if (asked.empty()) {
    const bool of_many = trace.cells.size() > view.max_cells() && has_many_ranks(trace);
    return embedded_steps(trace.cells, of_many ? std::min(view.max_cells(), view.max_of_many()) : view.max_cells(),
                          steps_by_worth(sums_of(view.run())));
  }
  std::vector<StepRange> out = step_ranges(trace.cells);
  std::erase_if(out, [&](const StepRange& range) { return !std::ranges::binary_search(asked, range.step); });
  if (out.size() == 1) out[0].end = std::min(out[0].end, out[0].begin + view.max_cells());
  return out;
}

std::string payload_of(const PipelineView& view, const std::vector<int32_t>& asked) {
  const Trace& trace = view.trace();
  const TheoryRun& theory = view.theory();
  const CellPayload payload = make_cell_payload(trace, steps_of_page(view, asked), &theory.theory);
  WireColumns columns;
  const size_t at = columns.add_bytes(payload.bytes);
  JsonWriter json;
  json.begin_object().field("cells_at", at);
  write_shifts(json, view.timeline(), payload);
  add_bubbles(columns, trace, theory, sums_of(view.run()), payload);
  columns.describe(json);
  json.key("report").raw(pipeline_json(trace, theory.theory, payload));
  json.end_object();
  return std::move(columns).with_header(json.take());
}

}  // namespace

int64_t PipelineView::zero_ns() const {
  std::call_once(zero_once_, [&] { zero_ns_ = axis_zero_ns(trace()); });
  return zero_ns_;
}

const Result<PricedRun>& PipelineView::what_if() const {
  std::call_once(what_if_once_, [&] {
    Diagnostics notes;
    Result<WhatIf> model = what_if_of(run_, notes);
    if (!model) {
      what_if_.emplace(std::move(model).error());
      return;
    }
    PricedRun run{std::move(*model), {}};
    run.fixes = price_fixes(run.model, FixOptions{});
    what_if_.emplace(std::move(run));
  });
  return *what_if_;
}

Result<std::shared_ptr<const PricedRun>> PipelineView::what_if(const Query& query) const {
  const Result<PricedRun>& plain = what_if();
  if (!plain) return plain.error();
  std::string flags;
  for (const auto& [name, value] : query.parameters)
    if (std::ranges::count(kBytesParameters, name)) flags += name + "=" + value + "\n";
  if (flags.empty()) return std::shared_ptr<const PricedRun>(std::shared_ptr<void>(), &*plain);
  if (!describe_) return make_error(ErrorCode::kUsage, "memory is checked for the run that is open, by its server");
  const std::lock_guard lock(described_mutex_);
  if (described_ && described_by_ == flags) return described_;
  TRY(bytes, describe_(query, trace()));
  PricedRun run{plain->model, {}, std::move(*bytes)};
  FixOptions options;
  options.bytes = run.bytes ? &*run.bytes : nullptr;
  run.fixes = price_fixes(run.model, options);
  if (const auto ran = run.model.schedule_of({}); ran && run.bytes) run.bytes->compare_with(*ran, run.fixes.layers);
  described_by_ = flags;
  return described_ = std::make_shared<const PricedRun>(std::move(run));
}

std::shared_ptr<const std::string> PipelineView::payload(const std::vector<int32_t>& steps) const {
  // Others who ask meanwhile wait, since making two at a time would take twice the memory.
  const std::lock_guard lock(payload_mutex_);
  if (payload_ && payload_steps_ == steps) return payload_;
  auto made = std::make_shared<const std::string>(payload_of(*this, steps));
  if (made->size() <= kMaxKeptPayload) payload_ = made, payload_steps_ = steps;
  return made;
}

std::vector<int32_t> steps_by_worth(const PipelineSums& sums) {
  std::vector<const StepSums*> usual, outliers;
  for (const StepSums& step : sums.steps) (sums.is_outlier(step.step) ? outliers : usual).push_back(&step);
  const auto longer = [](const StepSums* a, const StepSums* b) {
    return a->span_ns() != b->span_ns() ? a->span_ns() > b->span_ns() : a->step < b->step;
  };
  sort_stably(usual, longer);
  sort_stably(outliers, longer);
  std::vector<int32_t> out;
  if (const auto& worst = outliers.empty() ? usual : outliers; !worst.empty()) out.push_back(worst.front()->step);
  if (!usual.empty()) out.push_back(usual[usual.size() / 2]->step);
  for (const StepSums* step : outliers)
    if (step->step != out.front()) out.push_back(step->step);
  return out;
}

Result<std::string> pipeline_answer(const PipelineView& view, const Query& query) {
  const Cells& cells = view.trace().cells;
  if (cells.size() == 0) return no_cells();
  const std::string* text = query.find("steps");
  if (!text) return *view.payload();
  TRY(asked, parse_number_list(*text));
  size_t count = 0;
  for (const int32_t step : *asked) {
    const auto found = std::equal_range(cells.step.begin(), cells.step.end(), step);
    if (found.first == found.second)
      return make_error(ErrorCode::kNotFound, "this run has no cells of step " + std::to_string(step));
    count += found.second - found.first;
  }
  if (asked->size() > 1 && count > view.max_cells())
    return make_error(ErrorCode::kUsage, "these steps have " + std::to_string(count) + " cells", "ask for fewer steps");
  return *view.payload(*asked);
}

Result<std::string> worst_ranks_json(const Run& run) {
  if (const RunGraph& graph = graph_of(run, LaunchRule::kFree); !graph.graph) return *graph.error;
  const Stragglers& stragglers = stragglers_of(run);
  std::map<int32_t, size_t> of_stage;
  JsonWriter json;
  json.begin_object().key("ranks").begin_array();
  for (const size_t i : worst_workers(stragglers)) {
    const StragglerWorker& worker = stragglers.workers[i];
    const Part& part = run.trace().parts[worker.part];
    if (++of_stage[part.stage] > kMaxWorstRanks) continue;
    json.begin_object().field("rank", part.rank).field("beyond_ns", std::round(worker.beyond_ns()));
    json.field("peer_ratio", worker.ratio).field("verdict", straggler_verdict_name(worker.verdict)).end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace stageline
