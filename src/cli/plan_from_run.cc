#include "cli/plan_from_run.h"

#include "cli/open_run.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "profile/memory_blocks.h"

namespace stageline {
namespace {

using namespace plan;

// The times of layers are priced with this many other draws of the run's steps: the error of a deviation from 200 draws
// is a twentieth of it.
constexpr size_t kDraws = 200;

// Measures the stages, the links and the step of a run.
Result<RecordedRun> recorded_run(const WhatIf& model, const Arguments& arguments) {
  const OrderModel& order = model.order();
  if (!order.known())
    return make_error(ErrorCode::kUnavailable, "the run has no schedule that could be planned: " + order.why_not().en,
                      "stageline analyze schedule shows what was compared");
  RecordedRun run{.schedule = order.recognition().best().name, .sizes = order.sizes()};
  run.stages = order.stages(), run.steps = order.step_costs(model.graph());
  run.weight_share = order.weight_share();
  if (order.overlap_ratio() != 1) run.overlap = order.overlap_ratio();
  if (arguments.has("layers")) {
    TRY(layers, parse_layers(arguments.get("layers"), run.sizes.stages, run.sizes.chunks, order.layout()));
    run.layers = std::move(*layers);
  }
  SlowestLinks links = slowest_links(model.latencies(), run.sizes.stages);
  run.there = std::move(links.there), run.back = std::move(links.back);
  const StepGraph& graph = model.graph();
  for (size_t op = 0; op < graph.size(); ++op) run.replicas = std::max(run.replicas, graph.dp(op) + 1);
  run.step_ns = model.error().recorded_ns;
  run.error = std::abs(model.error().order_ns / run.step_ns - 1);
  return run;
}

Result<RecordedRun> read_run(const Arguments& arguments, const Terminal& terminal) {
  Arguments reading = arguments;
  reading.operands = {arguments.get("from")};
  for (const char* flag : {"pp", "tp", "cp", "ep", "dp"}) reading.drop(flag);
  TRY(trace, open_run(reading, terminal, reading.operands, "", Clocks::kCompared));
  const Run run(*trace);
  Diagnostics notes;
  TRY(model, what_if_of(run, notes));
  TRY(recorded, recorded_run(*model, arguments));
  recorded->peak_bytes = peak_memory_of_stages(*trace);
  return recorded;
}

// Takes the run's degrees where no flag gives others. Errors: kUsage for several sizes of a micro-batch.
Status take_degrees_of_run(const RecordedRun& run, Wish& wish) {
  for (auto* list : {&wish.tp, &wish.cp, &wish.ep})
    if (list->empty()) *list = {1};
  if (wish.pp.empty()) wish.pp = {run.sizes.stages};
  if (wish.micro_batch.empty()) wish.micro_batch = {1};
  if (wish.micro_batch.size() > 1)
    return make_error(ErrorCode::kUsage, "--micro-batch-size is one number with --from: the run's");
  wish.gpus = run.sizes.stages * run.replicas * wish.tp.front() * wish.cp.front();
  wish.global_batch =
      wish.micro_batches.empty() ? int64_t{1} * run.sizes.micro_batches * run.replicas * wish.micro_batch.front() : 0;
  return {};
}

// The layout that ran.
Layout layout_of_run(const RecordedRun& run, const Wish& wish) {
  Layout layout;
  layout.tp = wish.tp.front(), layout.cp = wish.cp.front(), layout.ep = wish.ep.front();
  layout.pp = run.sizes.stages, layout.dp = run.replicas;
  layout.micro_batch = wish.micro_batch.front(), layout.sequence = wish.sequence;
  return layout;
}

// Compares the model's bytes with those that the run measured. Each plan keeps the measured bytes beyond them.
std::vector<MeasuredStage> take_memory_of_run(const RecordedRun& run, const Schedule& ran, Wish& wish) {
  StageBytes bytes;
  bytes.model = wish.model, bytes.layout = layout_of_run(run, wish);
  bytes.options = wish.rates.memory, bytes.measured = run.peak_bytes;
  bytes.full = wish.recompute == RecomputeWish::kFull;
  auto compared = bytes.compare_with(ran, run.layers);
  wish.other_bytes = bytes.beyond;
  return compared;
}

}  // namespace

Result<std::optional<RecordedRun>> run_of_plan(const Arguments& arguments, const Terminal& terminal,
                                               const PlanGiven& given) {
  if (!arguments.has("from") && !given.run) return std::optional<RecordedRun>();
  TRY(run, given.run ? recorded_run(*given.run, arguments) : read_run(arguments, terminal));
  if (given.trace) run->peak_bytes = peak_memory_of_stages(*given.trace);
  return std::optional(std::move(*run));
}

Status take_run(RecordedRun run, const Arguments& arguments, Wish& wish, PlanAnswer& answer) {
  if (run.layers.empty())
    run.layers = even_layers(wish.model.layers(), static_cast<int32_t>(run.stages.cost_ns.size()));
  if (const int64_t sum = sum_over<int64_t>(run.layers); sum != wish.model.layers())
    return make_error(ErrorCode::kUsage, "--layers gives " + std::to_string(sum) + " layers, the model has " +
                                             std::to_string(wish.model.layers()));
  const RecordedTimes times = times_of_run(run, wish.model.kind_of, wish.model.kinds.size());
  wish.recorded = times.times;
  wish.resampled = resampled_times(run, wish.model.kind_of, wish.model.kinds.size(), kDraws);
  answer.slow = times.slow;
  wish.recorded_error = std::max(0.001, run.error + times.residual);
  if (!times.kinds_distinct)
    wish.model.notes.emplace_back("a price for each kind of layer: the run cannot tell them apart");
  TRY_OK(take_degrees_of_run(run, wish));
  const Layout layout = layout_of_run(run, wish);
  TRY(problem, problem_of(wish, layout, run.schedule, run.sizes.chunks, run.sizes.micro_batches));
  TRY(span, span_of(*problem, times.stages));
  // The part of a step that is not the replayed pipeline stays as the run had it.
  wish.recorded_rest_ns = run.step_ns - static_cast<double>(*span);
  if (wish.model.sized()) answer.memory = take_memory_of_run(run, problem->schedule, wish);
  if (!arguments.has("pp")) return {};
  // A link of another number of stages is none that was recorded.
  if (wish.pp.size() > 1 || wish.pp.front() != run.sizes.stages) {
    wish.recorded->there.clear(), wish.recorded->back.clear();
    for (Times& draw : wish.resampled) draw.there.clear(), draw.back.clear();
  }
  return {};
}

}  // namespace stageline
