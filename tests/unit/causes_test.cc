#include "diagnosis/causes/causes.h"

#include <doctest/doctest.h>

#include "diagnosis/causes/cause_kind.h"
#include "diagnosis/causes/cell_times.h"
#include "diagnosis/causes/findings.h"
#include "diagnosis/explain.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/replay/theory.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "unit/facts_of_trace.h"
#include "unit/make_trace.h"

using namespace stageline;
using testing::make_1f1b_trace;
using testing::TraceSpec;

namespace {

CauseList causes_of_linked(Trace& trace) {
  if (trace.links.empty()) link_cells(trace);
  const Run run(trace);
  REQUIRE(graph_of(run, LaunchRule::kInOrder).graph);
  return causes_of(run);
}

const CauseKind* kind_of(std::string_view id) {
  for (const CauseKind* kind : cause_kinds())
    if (kind->id == id) return kind;
  return nullptr;
}

}  // namespace

TEST_CASE("causes: an even run has none, whatever its bubble") {
  for (const int32_t stages : {1, 2, 8}) {
    Trace trace = make_1f1b_trace({.stages = stages, .micro_batches = 8, .steps = 3, .dp = 2});
    trace.pipeline_stages = stages;
    const CauseList list = causes_of_linked(trace);
    CHECK(list.causes.empty());
    CHECK(list.together_ns == 0);
    CHECK(list.steps == 3);
    CHECK(list.step_ns - list.gap_ns == (8.0 + stages - 1) * (8'050'000 + 16'200'000));
  }
}

TEST_CASE("causes: micro-batches that are long forward and backward are sequences, not ranks or stages") {
  SimulateOptions o;
  o.schedule = *make_schedule("1f1b", {.stages = 2, .micro_batches = 8});
  o.steps = 16;
  o.dp = 2;
  o.faults = {*parse_fault("long-sequences:0.15,2")};
  Result<SimulatedRun> run = simulate_run(o);
  REQUIRE(run);
  Trace trace = std::move(run->trace);
  trace.cells.sort();
  link_cells(trace);
  Diagnostics notes;
  const auto graph = build_step_graph(trace, notes, LaunchRule::kInOrder);
  REQUIRE(graph);
  int64_t long_ones = 0;  // those of stage 0: every long sequence once
  for (size_t i = 0; i < trace.cells.size(); ++i)
    long_ones += trace.parts[trace.cells.part[i]].stage == 0 && trace.cells.kind[i] == CellKind::kForward &&
                 trace.cells.dur_ns(i) == 20'000'000;
  REQUIRE(long_ones > 3);
  const std::vector<bool> counts(graph->steps.size(), true);
  const CellTimes times(trace, *graph, counts);
  CHECK(times.sequences().all == 16 * 2 * 8);
  CHECK(times.sequences().long_ones == long_ones);
  CHECK(times.sequences().long_factor == doctest::Approx(2));
  CHECK(times.sequences().correlation > 0.99);
  for (uint32_t op = 0; op < graph->size(); ++op)
    if (times.worker_of(op) != CellTimes::kNone)
      CHECK(times.sequence_factor(op) ==
            doctest::Approx(graph->dur_ns[op] / (graph->kind[op] == CellKind::kForward ? 10e6 : 20e6)));
  const CauseList list = causes_of_linked(trace);
  REQUIRE_FALSE(list.causes.empty());
  CHECK(list.causes[0].kind->id == "long_sequences");
  for (const Cause& c : list.causes) CHECK(c.kind->id != "slow_stage");
}

TEST_CASE("causes: every finding speaks both languages and names its price") {
  CauseList list;
  list.step_ns = 100e6;
  list.steps = 5;
  Trace trace = make_1f1b_trace({.stages = 4, .micro_batches = 8, .steps = 2, .dp = 2});
  trace.pipeline_stages = 4;
  const Recognition recognition = [&] {
    Recognition r = recognise(trace);
    Divergence d;
    d.stage = 1;
    d.lists = 2;
    d.sentence.en = "runs F1 before F0";
    d.sentence.zh = "先执行 F1";
    r.divergences.insert(r.divergences.begin(), d);
    return r;
  }();
  for (const CauseKind* kind : cause_kinds()) {
    Cause c;
    c.kind = kind;
    c.places = {{.kind = PlaceKind::kStage, .ranks = {7}, .stage = 3, .replica = 1, .from_stage = 2}};
    c.figures = {.ratio = 1.5, .each_ns = 15e6, .count = 3, .of = 10, .rank = 7, .stage = 3};
    c.price.lost_ns = 20e6;
    list.causes = {c};
    const auto findings = cause_findings(trace, list, recognition);
    REQUIRE(findings.size() == 1);
    const Finding& f = findings[0];
    CAPTURE(f.id);
    const std::string key = key_of(f);
    for (const std::string* text : {&f.id, &key, &f.value, &f.title.en, &f.title.zh, &f.detail.en, &f.detail.zh,
                                    &f.price.fix.en, &f.price.fix.zh, &f.evidence.analysis})
      CHECK_FALSE(text->empty());
    CHECK(f.lost_ns_per_step == 20e6);
    CHECK(f.weight == doctest::Approx(0.2));
    CHECK(f.price.saving_ns == 20e6);
    CHECK(f.detail.en.find("20.0") != std::string::npos);
    CHECK(f.detail.zh.find("20.0") != std::string::npos);
    CHECK(f.detail.en.ends_with("."));
    // A title with advice behind its colon has it in both languages.
    CHECK((f.title.zh.find("：") != std::string::npos) == (f.title.en.find(": ") != std::string::npos));
  }
}

TEST_CASE("causes: pipelines of one replica are not called replicas, several links are one finding") {
  Trace trace = make_1f1b_trace({.stages = 4, .micro_batches = 8, .steps = 2, .dp = 2});
  trace.pipeline_stages = 4;
  trace.context_parallel = 2;
  CauseList list;
  list.step_ns = 100e6;
  Cause link;
  link.kind = kind_of("slow_link");
  link.together = {"slow_link", Together::Role::kEqual};
  link.places = {{.kind = PlaceKind::kLink, .stage = 2, .replica = 1, .from_stage = 1}};
  link.price.lost_ns = 5e6;
  list.causes = {link, link};
  list.causes[1].places = {{.kind = PlaceKind::kLink, .stage = 3, .replica = 1, .from_stage = 2, .both_ways = true}};
  const auto findings = cause_findings(trace, list, Recognition{});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].title.en.find("of pipeline 1 ") != std::string::npos);
  CHECK(findings[0].title.zh.find("流水线 1") != std::string::npos);
  CHECK(findings[0].detail.en.find("Also slow: between stages 2 and 3") != std::string::npos);
  trace.context_parallel = 1;
  CHECK(cause_findings(trace, list, Recognition{})[0].title.en.find("of replica 1 ") != std::string::npos);
}

TEST_CASE("explain: hostile cells are survived") {
  Trace trace = make_1f1b_trace({.stages = 3, .micro_batches = 4, .steps = 5, .dp = 2});
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    if (i % 3 == 0) trace.cells.micro_batch[i] = kUnknown;
    if (i % 4 == 0) trace.cells.chunk[i] = 2'000'000'000;
    if (i % 7 == 0) trace.cells.end_ns[i] = trace.cells.start_ns[i] - 5;
    if (i % 5 == 0) trace.cells.start_ns[i] = trace.cells.start_ns[0];
    if (i % 11 == 0) trace.cells.step[i] = kUnknown;
  }
  trace.parts[2].stage = kUnknown;
  trace.cells.sort();
  link_cells(trace);
  const Explanation e = explain(Run(trace), {});
  CHECK(e.findings.size() <= kMaxFindings);
  Trace none;
  CHECK(explain(Run(none), {}).findings.empty());
  CHECK_FALSE(explained_findings(explain(Run(none), {})).list.empty());
}

TEST_CASE("causes: an order that is left has words where the recognition holds no divergence") {
  Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 4, .steps = 1, .dp = 1});
  CauseList list;
  list.step_ns = 100;
  Cause order;
  order.kind = kind_of("order");
  order.figures = {.count = 3, .of = 8};
  order.price.lost_ns = 20;
  list.causes.push_back(order);
  const std::vector<Finding> findings = cause_findings(trace, list, Recognition{});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].title.en == "3 of 8 rank-steps deviate from the order of the schedule: restore the order");
  CHECK(findings[0].title.zh.find("8 个 rank×步 中有 3 个") == 0);
  CHECK(findings[0].price.saving_ns == 20);
}

TEST_CASE("causes: a message may be the longest of late ones that differ much, and not of late ones that are alike") {
  const LateLengths lengths(std::vector<double>{8e6, 9e6, 11e6, 14e6, 20e6, 33e6, 60e6});
  const LateLengths alike(std::vector<double>{20e6, 20.1e6, 20.2e6, 20e6});
  CHECK(lengths.may_hold(300e6));
  CHECK_FALSE(lengths.may_hold(30'000e6));
  CHECK(alike.may_hold(20e6));
  CHECK_FALSE(alike.may_hold(300e6));
  CHECK_FALSE(LateLengths(std::vector<double>{8e6, 60e6}).may_hold(60e6));  // too few
  CHECK_FALSE(LateLengths(std::vector<double>{}).may_hold(1));
}
