// Overlapped forward and backward cells, what cells cost, and where steps begin and end.
#include <doctest/doctest.h>

#include <string>

#include "diagnosis/causes/findings.h"
#include "make_trace.h"
#include "model/intervals.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/order/recognise.h"
#include "pipeline/replay/replay.h"
#include "pipeline/replay/theory.h"
#include "pipeline/sums/pipeline_sums.h"
#include "pipeline/sums/stage_costs.h"
#include "schedules/registry.h"
#include "unit/facts_of_trace.h"

using namespace stageline;
using namespace stageline::testing;

namespace {

Trace one_rank() {
  Trace trace;
  trace.parts.resize(1);
  trace.parts[0].stage = 0;
  return trace;
}

// The cells of a replayed schedule, an overlapped cell as its two halves.
Trace replayed(const char* name, ScheduleSizes sizes, const UnitCosts& costs, int64_t slow_stage_ns = 0) {
  Trace trace;
  trace.clock = ClockState::kShared;
  const Result<Schedule> schedule = make_schedule(name, sizes);
  REQUIRE(schedule);
  ReplayCosts each;
  each.cell_ns = [&](int32_t rank, const ScheduleCell& cell) {
    return costs.of(cell) + (rank == 0 ? slow_stage_ns : 0);
  };
  const auto times = replay(*schedule, each);
  REQUIRE(times);
  for (size_t r = 0; r < schedule->ranks.size(); ++r) {
    Part part;
    part.rank = part.stage = static_cast<int32_t>(r);
    part.dp = 0;
    trace.parts.push_back(part);
    for (size_t i = 0; i < schedule->ranks[r].size(); ++i)
      for (const Action& a : schedule->ranks[r][i].actions())
        trace.cells.add({0, static_cast<int32_t>(r), a.kind, a.chunk, a.micro_batch, (*times)[r][i].start_ns,
                         (*times)[r][i].end_ns, kNoSlice});
  }
  trace.cells.sort();
  trace.pipeline_stages = sizes.stages;
  link_cells(trace);
  return trace;
}

const Finding* find(const Findings& findings, const std::string& id) {
  for (const Finding& finding : findings.list)
    if (finding.id == id) return &finding;
  return nullptr;
}

}  // namespace

TEST_CASE("overlapped cells: a forward and a backward of the same times are a pair, others are not") {
  Trace trace = one_rank();
  trace.parts.resize(2);
  trace.cells.add({0, 0, CellKind::kForward, 0, 4, 10, 20, kNoSlice});
  trace.cells.add({0, 0, CellKind::kBackward, 0, 2, 10, 20, kNoSlice});
  trace.cells.add({0, 0, CellKind::kForward, 0, 5, 30, 30, kNoSlice});  // instants
  trace.cells.add({0, 0, CellKind::kBackward, 0, 3, 30, 30, kNoSlice});
  trace.cells.add({0, 0, CellKind::kForward, 0, 6, 40, 50, kNoSlice});
  trace.cells.add({0, 0, CellKind::kWeightGrad, 0, 6, 40, 50, kNoSlice});
  trace.cells.add({0, 1, CellKind::kBackward, 0, 6, 40, 50, kNoSlice});  // another rank
  trace.cells.sort();
  const std::vector<uint32_t> pairs = overlapped_pairs(trace.cells);
  CHECK(pairs == std::vector<uint32_t>{1, 0, kNoPair, kNoPair, kNoPair, kNoPair, kNoPair});
}

TEST_CASE("overlapped cells: dualpipe-v's costs come out as they went in, F&B as a kind of its own") {
  UnitCosts costs;
  costs.forward_ns = 1'000'000;
  costs.input_ns = 1'200'000;
  costs.weight_ns = 800'000;
  costs.backward_ns = 2'000'000;
  costs.overlapped_ns = 2'600'000;
  const Trace trace = replayed("dualpipe-v", {.stages = 4, .micro_batches = 8, .chunks = 2}, costs);
  bool both = false;
  for (const StageCost& cost : stage_costs(trace)) {
    const bool overlapped = cost.kind == CellKind::kForwardBackward;
    const double expected = cost.kind == CellKind::kForward      ? 1e6
                            : cost.kind == CellKind::kBackward   ? 2e6
                            : cost.kind == CellKind::kInputGrad  ? 1.2e6
                            : cost.kind == CellKind::kWeightGrad ? 0.8e6
                                                                 : 2.6e6;
    both |= overlapped;
    CHECK(cost.mean_ns == doctest::Approx(expected));
    CHECK(cost.ratio_to_median == doctest::Approx(1));
  }
  CHECK(both);
  // Time counts once: what a stage computes is its busy time over its micro-batches and chunks.
  for (const StageLoad& load : stage_loads(stage_costs(trace))) {
    double busy = 0;
    for (const RankSums& rank : pipeline_sums(trace).ranks)
      if (rank.part == load.stage) busy = static_cast<double>(rank.busy_ns);
    CHECK(load.per_micro_batch_ns == doctest::Approx(busy / 16));
  }
}

TEST_CASE("steps: a receive that waits through the step before does not begin its step") {
  Trace trace = one_rank();
  trace.cells.add({0, 0, CellKind::kForward, 0, 0, 100, 200, kNoSlice});
  trace.cells.add({0, 0, CellKind::kBackward, 0, 0, 200, 400, kNoSlice});
  trace.cells.add({0, 0, CellKind::kOptimizer, 0, kUnknown, 400, 500, kNoSlice});
  trace.cells.add({1, 0, CellKind::kRecvForward, 0, 0, 250, 600, kNoSlice});
  trace.cells.add({1, 0, CellKind::kCollective, 0, kUnknown, 450, 550, kNoSlice});  // begins before step 0 is over
  trace.cells.add({1, 0, CellKind::kForward, 0, 0, 600, 700, kNoSlice});
  trace.cells.add({2, 0, CellKind::kSendForward, 0, 0, 800, 900, kNoSlice});  // nothing but messages
  trace.cells.sort();
  const PipelineSums sums = pipeline_sums(trace);
  REQUIRE(sums.steps.size() == 3);
  CHECK(sums.steps[0].end_ns == 500);
  CHECK(sums.steps[1].start_ns == 500);
  CHECK(sums.steps[1].end_ns == 700);
  CHECK(sums.steps[2].start_ns == 800);
  CHECK(sums.ranks[1].cells == 3);  // it belongs to its step all the same
}

TEST_CASE("findings: one hiccup makes no slow stage, a slow stage does") {
  TraceSpec spec;
  Trace trace = make_1f1b_trace(spec);
  link_cells(trace);
  CHECK(find(reported_findings(trace), "stage.slow") == nullptr);
  const uint32_t last = find_cell(trace, 0, 2, CellKind::kBackward, 7);
  trace.cells.end_ns[last] += 60'000'000;
  CHECK(stage_loads(stage_costs(trace))[2].ratio_to_median > 1.2);
  CHECK(find(reported_findings(trace), "stage.slow") == nullptr);
  UnitCosts costs;
  CHECK(find(reported_findings(replayed("1f1b", {.stages = 4, .micro_batches = 8}, costs, 500'000)), "stage.slow"));
}

TEST_CASE("findings: nobody moves layers where a step hardly computes") {
  UnitCosts costs;
  costs.latency_ns = 0;
  Trace trace = replayed("1f1b", {.stages = 4, .micro_batches = 8}, costs, 500'000);
  for (size_t i = 0; i < trace.cells.size(); ++i) {  // the same cells, with a long wait before each
    const int64_t dur = trace.cells.dur_ns(i);
    trace.cells.start_ns[i] *= 40;
    trace.cells.end_ns[i] = trace.cells.start_ns[i] + dur;
  }
  link_cells(trace);
  CHECK(find(reported_findings(trace), "stage.slow") == nullptr);
}

TEST_CASE("findings: the bubble is compared with the schedule that ran, and the lead names it") {
  UnitCosts costs;
  costs.overlapped_ns = 3'000'000;
  for (const char* name : {"zb-v", "1f1b", "dualpipe-v"}) {
    CAPTURE(name);
    const int32_t chunks = std::string(name) == "1f1b" ? 1 : 2;
    const Trace trace = replayed(name, {.stages = 4, .micro_batches = 8, .chunks = chunks}, costs);
    const Findings findings = find_findings(trace);
    CHECK(findings.headline.lead.en.find(std::string("Schedule: ") + name + "; 100\u202f%") != std::string::npos);
    CHECK(findings.headline.lead.zh.find(name) != std::string::npos);
    const PipelineSums sums = pipeline_sums(trace);
    double waiting = 0;
    for (const RankSums& rank : sums.ranks) waiting += static_cast<double>(rank.span_bubble_ns) / 4;
    const double measured = waiting / static_cast<double>(sums.steps[0].pipeline_span_ns());
    CHECK(ideal_bubble(recognise(trace), stage_costs(trace)) == doctest::Approx(measured).epsilon(0.001));
    const Finding* bubble = findings.others.empty() ? nullptr : &findings.others.front();
    if (bubble && bubble->id == "bubble")
      CHECK(bubble->detail.en.find(std::string("An ideal ") + name + " (") != std::string::npos);
  }
}
