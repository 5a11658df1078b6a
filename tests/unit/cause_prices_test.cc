// Compares the costs of causes with the simulated run without them: without jitter to the last per mille.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "diagnosis/causes/cause_kind.h"
#include "diagnosis/causes/causes.h"
#include "diagnosis/causes/cell_times.h"
#include "diagnosis/diff/diff_answer.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/replay/theory.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "unit/facts_of_trace.h"

using namespace stageline;

namespace {

struct RunSpec {
  std::string schedule;
  std::string fault = {};
  bool messages = false;
  double jitter = 0;
  int32_t stages = 4, steps = 3;
};

Trace simulated(const RunSpec& spec) {
  const ScheduleDef* def = find_schedule(spec.schedule);
  REQUIRE(def != nullptr);
  SimulateOptions o;
  Result<Schedule> schedule = make_schedule(
      spec.schedule, {.stages = spec.stages, .micro_batches = 4 * spec.stages, .chunks = def->default_chunks});
  REQUIRE(schedule);
  o.schedule = std::move(*schedule);
  o.steps = spec.steps;
  o.messages = spec.messages;
  o.jitter = spec.jitter;
  o.costs.latency_ns = 200'000;
  if (!spec.fault.empty()) {
    Result<Fault> fault = parse_fault(spec.fault);
    REQUIRE(fault);
    o.faults = {*fault};
  }
  Result<SimulatedRun> run = simulate_run(o);
  REQUIRE(run);
  run->trace.cells.sort();
  link_cells(run->trace);
  return std::move(run->trace);
}

StepGraph graph_of(const Trace& trace) {
  Diagnostics notes;
  Result<StepGraph> graph = build_step_graph(trace, notes, LaunchRule::kInOrder);
  REQUIRE(graph);
  return std::move(*graph);
}

CauseList causes_of(const RunSpec& spec) {
  const Trace trace = simulated(spec);
  return causes_of(trace);
}

// The only cause of a run with a fault, and what it costs against the run without.
void check_only(RunSpec spec, std::string_view kind, double tolerance) {
  CAPTURE(spec.schedule);
  CAPTURE(spec.fault);
  CAPTURE(spec.messages);
  const CauseList found = causes_of(spec);
  spec.fault = "";
  const CauseList well = causes_of(spec);
  CHECK(well.causes.empty());
  REQUIRE(found.causes.size() == 1);
  CHECK(found.causes[0].kind->id == kind);
  const double lost = found.step_ns - well.step_ns;
  REQUIRE(lost > 0.01 * well.step_ns);
  CHECK(found.causes[0].price.lost_ns == doctest::Approx(lost).epsilon(tolerance));
}

}  // namespace

TEST_CASE("causes: an order that is left costs what restoring it saves, on every kind of schedule") {
  for (const char* schedule :
       {"fthenb", "1f1b", "vpp", "bfs", "zb-h1", "zb-h1-paddle", "zb-v", "dualpipe", "dualpipe-v"})
    for (const bool messages : {false, true})
      check_only({.schedule = schedule, .fault = "wrong-order:1", .messages = messages}, "order", 0.02);
}

TEST_CASE("causes: a missing split costs what the schedule's own split saves, overlapped pairs or not") {
  for (const char* schedule : {"interleaved-zb", "zb-v", "dualpipe", "dualpipe-v"})
    check_only({.schedule = schedule, .fault = "missing-dw"}, "unsplit", 1e-3);
}

TEST_CASE("causes: stages that hold the same layers for two directions are one cause") {
  const CauseList found = causes_of({.schedule = "dualpipe", .fault = "heavy-head:0.8"});
  const CauseList well = causes_of({.schedule = "dualpipe"});
  REQUIRE(found.causes.size() == 1);
  const Cause& c = found.causes[0];
  CHECK(c.kind->id == "slow_stage");
  REQUIRE(c.places.size() == 2);
  CHECK(c.places[0].stage == 0);
  CHECK(c.places[1].stage == 3);
  CHECK(c.places[0].chunk == 1);  // the second direction ends at stage 0
  CHECK(c.figures.ratio == doctest::Approx(1.8));
  CHECK(c.price.lost_ns == doctest::Approx(found.step_ns - well.step_ns).epsilon(1e-3));
  // A single slow one does not make a pair.
  const CauseList one = causes_of({.schedule = "dualpipe", .fault = "slow-stage:2,1.3"});
  REQUIRE(one.causes.size() == 1);
  CHECK(one.causes[0].place().stage == 2);
  CHECK(one.causes[0].places.size() == 1);
}

TEST_CASE("causes: of an overlapped pair each half has its part of the length of its micro-batch") {
  for (const char* schedule : {"dualpipe", "dualpipe-v"}) {
    CAPTURE(schedule);
    const RunSpec spec{.schedule = schedule, .fault = "long-sequences:0.15,2", .jitter = 0.02, .steps = 6};
    const Trace trace = simulated(spec);
    const StepGraph graph = graph_of(trace);
    const std::vector<bool> counts(graph.steps.size(), true);
    const CellTimes times(trace, graph, counts);
    CHECK(times.sequences().all == 6 * 16);
    CHECK(times.sequences().long_factor == doctest::Approx(2).epsilon(0.04));
    CHECK(times.sequences().correlation > 0.95);
    const CauseList found = causes_of(trace);
    const CauseList well = causes_of({.schedule = schedule, .jitter = 0.02, .steps = 6});
    REQUIRE_FALSE(found.causes.empty());
    CHECK(found.causes[0].kind->id == "long_sequences");
    CHECK(found.causes[0].price.lost_ns == doctest::Approx(found.step_ns - well.step_ns).epsilon(0.05));
    // None of them is long in a run whose cells differ by chance.
    CHECK(well.causes.empty());
  }
}

TEST_CASE("causes: messages of several chunks belong to the work that they name") {
  check_only({.schedule = "interleaved-zb", .fault = "gc:50ms,0.03", .messages = true, .steps = 6}, "pauses", 0.02);
  check_only({.schedule = "vpp", .fault = "gc:50ms,0.03", .messages = true, .steps = 6}, "pauses", 0.02);
}

TEST_CASE("recognise: a run without any split is what it would be with it, unless it is that without") {
  CHECK(recognise(simulated({.schedule = "dualpipe-v", .fault = "missing-dw"})).best().name == "dualpipe-v");
  CHECK(recognise(simulated({.schedule = "dualpipe", .fault = "missing-dw"})).best().name == "dualpipe");
  CHECK(recognise(simulated({.schedule = "zb-h1", .fault = "missing-dw"})).best().name == "1f1b");
  CHECK(recognise(simulated({.schedule = "1f1b", .fault = "wrong-order:1"})).best().name == "1f1b");
  CHECK(recognise(simulated({.schedule = "dualpipe-v-mindspeed"})).best().name == "dualpipe-v-mindspeed");
  // MindSpeed's labels count on in the second chunk, and say whose run it is.
  Trace trace = simulated({.schedule = "dualpipe-v-mindspeed", .fault = "missing-dw"});
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.chunk[i] == 1) trace.cells.micro_batch[i] += 16;
  CHECK(recognise(trace).best().name == "dualpipe-v-mindspeed");
}

TEST_CASE("diff: a split that is missing is the order's doing, and no backward's") {
  for (const char* schedule : {"dualpipe", "dualpipe-v", "zb-v"})
    for (const bool back : {false, true}) {
      CAPTURE(schedule);
      CAPTURE(back);
      const Trace split = simulated({.schedule = schedule});
      const Trace whole = simulated({.schedule = schedule, .fault = "missing-dw"});
      const auto diff = back ? diff_runs(whole, split) : diff_runs(split, whole);
      REQUIRE(diff);
      REQUIRE(std::abs(diff->change_ns) > 0.01 * diff->a.step_ns);
      CHECK(diff->unmatched == 0);
      CHECK(diff->unused == 0);
      double sum = 0;
      for (const DiffGroup& group : diff->groups) {
        sum += group.effect_ns;
        if (group.cause == DiffCause::kSchedule)
          CHECK(group.effect_ns == doctest::Approx(diff->change_ns).epsilon(1e-3));
        else CHECK(std::abs(group.effect_ns) < 1e-3 * std::abs(diff->change_ns));
      }
      CHECK(sum == doctest::Approx(diff->change_ns));
    }
}

TEST_CASE("diff: pauses on all stages are one row, though some stages alone would be sure") {
  const Trace a = simulated({.schedule = "1f1b", .jitter = 0.02, .steps = 12});
  const Trace b = simulated({.schedule = "1f1b", .fault = "gc:40ms,0.03", .jitter = 0.02, .steps = 12});
  const auto diff = diff_runs(a, b);
  REQUIRE(diff);
  int64_t rows = 0;
  for (const DiffGroup& group : diff->groups) {
    if (group.cause != DiffCause::kDelay) continue;
    ++rows;
    CHECK(group.stage == kUnknown);
    CHECK(group.pause_ns == doctest::Approx(40e6).epsilon(0.01));
    // The time between steps differs a little as well: it begins where the slowest rank ends.
    CHECK(group.effect_ns == doctest::Approx(diff->change_ns).epsilon(0.04));
  }
  CHECK(rows == 1);
}
