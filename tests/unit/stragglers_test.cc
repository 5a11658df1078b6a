#include "pipeline/measure/stragglers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnosis/causes/cause_kind.h"
#include "diagnosis/causes/causes.h"
#include "diagnosis/causes/findings.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "unit/facts_of_trace.h"
#include "unit/make_trace.h"

using namespace stageline;

namespace {

Trace simulated(SimulateOptions o, const std::vector<const char*>& faults = {}, const char* schedule = "1f1b") {
  Result<Schedule> made = make_schedule(schedule, {.stages = 4, .micro_batches = 16});
  REQUIRE(made);
  o.schedule = std::move(*made);
  for (const char* text : faults) o.faults.push_back(*parse_fault(text));
  Result<SimulatedRun> run = simulate_run(o);
  REQUIRE(run);
  run->trace.cells.sort();
  link_cells(run->trace);
  return std::move(run->trace);
}

SimulateOptions usual() {
  SimulateOptions o;
  o.dp = 4;
  o.steps = 6;
  o.jitter = 0.03;
  o.costs.latency_ns = 200'000;
  o.optimizer_ns = 3'000'000;
  return o;
}

Stragglers found(const Trace& trace) {
  Diagnostics notes;
  Result<StepGraph> graph = build_step_graph(trace, notes);
  REQUIRE(graph);
  return find_stragglers(trace, *graph, RunCoverage(trace, theory_of(trace)));
}

double mean_step_ns(const Trace& trace) {
  double sum = 0;
  const auto ranges = step_ranges(trace.cells);
  for (const StepRange& r : ranges) {
    const auto at = [&](size_t i) { return static_cast<std::ptrdiff_t>(i); };
    sum += static_cast<double>(
        *std::max_element(trace.cells.end_ns.begin() + at(r.begin), trace.cells.end_ns.begin() + at(r.end)) -
        *std::min_element(trace.cells.start_ns.begin() + at(r.begin), trace.cells.start_ns.begin() + at(r.end)));
  }
  return sum / static_cast<double>(ranges.size());
}

}  // namespace

TEST_CASE("stragglers: by hand, two replicas of one stage") {
  // Rank 1 takes 15 where rank 0 takes 10, forward and backward, in both steps.
  Trace trace;
  trace.clock = ClockState::kShared;
  for (int32_t rank = 0; rank < 2; ++rank) {
    Part part;
    part.rank = rank;
    part.stage = 0;
    part.dp = rank;
    trace.parts.push_back(part);
  }
  for (int32_t step = 0; step < 2; ++step)
    for (int32_t rank = 0; rank < 2; ++rank) {
      const int64_t cost = rank == 0 ? 10'000 : 15'000;
      int64_t at = step * 1'000'000;
      for (int32_t mb = 0; mb < 3; ++mb)
        for (const CellKind kind : {CellKind::kForward, CellKind::kBackward}) {
          trace.cells.add({step, rank, kind, 0, mb, at, at + cost, kNoSlice});
          at += cost;
        }
    }
  trace.cells.sort();
  link_cells(trace);
  const Stragglers s = found(trace);
  REQUIRE(s.workers.size() == 2);
  CHECK(s.workers[0].busy_ns == 60'000);
  CHECK(s.workers[1].busy_ns == 90'000);
  CHECK(s.workers[1].busy_ratio == doctest::Approx(1.2));  // 90 ÷ mean of 60 and 90
  CHECK(s.workers[1].ratio == doctest::Approx(1.5));       // to its only peer
  CHECK(s.workers[1].error == 0);
  CHECK(s.workers[1].slow_steps == 2);
  CHECK(s.workers[1].verdict == StragglerVerdict::kPersistent);
  CHECK(s.workers[0].verdict == StragglerVerdict::kFine);
  CHECK(straggler_words(s.workers[1]).en == "1.50× its peers, slow in 2 of 2 steps");
  CHECK(worst_workers(s) == std::vector<size_t>{1});
  CHECK(s.workers[1].beyond_ns() == doctest::Approx(30'000));
  CHECK(s.workers[0].beyond_ns() == 0);
  const CauseList list = causes_of(trace);
  CHECK(list.step_ns - list.gap_ns == doctest::Approx(90'000));
  const auto worker =
      std::find_if(list.causes.begin(), list.causes.end(), [](const Cause& c) { return c.kind->id == "slow_rank"; });
  REQUIRE(worker != list.causes.end());
  CHECK(worker->price.best_ns() == doctest::Approx(30'000));
  REQUIRE(s.steps.size() == 2);
  CHECK(s.steps[0].busy_ns == 75'000);
  CHECK(s.steps[0].slowest_part == 1);
  CHECK(s.steps[0].slowest_ratio == doctest::Approx(1.5));
}

TEST_CASE("stragglers: the worst stand first, those with a verdict before those that are merely above the median") {
  Stragglers s;
  const auto add = [&](double busy_ns, double ratio, double pause_ns, StragglerVerdict verdict) {
    StragglerWorker worker;
    worker.part = static_cast<int32_t>(s.workers.size());
    worker.steps = 2;
    worker.cells = 8;
    worker.busy_ns = busy_ns;
    worker.ratio = ratio;
    worker.pause_ns = pause_ns;
    worker.late_ns = 400;
    worker.verdict = verdict;
    s.workers.push_back(worker);
  };
  add(10'000, 1.25, 0, StragglerVerdict::kFine);           // 2 000 beyond, but within what chance explains
  add(10'000, 0.9, 1'000, StragglerVerdict::kPauses);      // 500
  add(10'000, 1.25, 0, StragglerVerdict::kPersistent);     // 2 000
  add(10'000, 0.98, 0, StragglerVerdict::kFine);           // nothing
  add(10'000, 1, 0, StragglerVerdict::kLateLaunch);        // 8 starts, 400 late each, in two steps: 1 600
  add(10'000, std::nan(""), 0, StragglerVerdict::kAlone);  // no peer to compare with
  CHECK(s.workers[1].beyond_ns() == doctest::Approx(500));
  CHECK(s.workers[4].beyond_ns() == doctest::Approx(1'600));
  CHECK(worst_workers(s) == std::vector<size_t>{2, 4, 1, 0});
}

TEST_CASE("stragglers: a healthy run has none, whatever the seed and the jitter up to 5 %") {
  for (const double jitter : {0.0, 0.02, 0.05})
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      CAPTURE(jitter);
      CAPTURE(seed);
      SimulateOptions o = usual();
      o.jitter = jitter;
      o.seed = seed;
      o.messages = seed % 2 == 0;
      const Trace trace = simulated(o);
      const Stragglers s = found(trace);
      CHECK(causes_of(trace).causes.empty());
      CHECK(s.slow_steps.empty());
      for (const StragglerWorker& worker : s.workers) CHECK(worker.verdict == StragglerVerdict::kFine);
      for (const FbCorrelation& c : s.correlations) CHECK(!c.data_dependent);
    }
}

TEST_CASE("stragglers: each fault is the first cause, and priced as the run without it") {
  const double healthy_ns = mean_step_ns(simulated(usual()));
  struct Case {
    const char* fault;
    std::string_view cause;
  };
  for (const Case& c : {Case{"slow-rank:5,1.3", "slow_rank"},
                        {"slow-stage:2,1.3", "slow_stage"},
                        {"heavy-head:0.8", "slow_stage"},
                        {"gc:30ms,0.02", "pauses"},
                        {"late-launch:5,2ms", "late_launch"}}) {
    CAPTURE(c.fault);
    const Trace trace = simulated(usual(), {c.fault});
    const CauseList list = causes_of(trace);
    REQUIRE(list.causes.size() == 1);
    CHECK(list.causes[0].kind->id == c.cause);
    // Pauses before a step's first cell cannot be seen.
    const double tolerance = c.cause == "pauses" ? 0.1 : 0.05;
    CHECK(list.causes[0].price.lost_ns == doctest::Approx(mean_step_ns(trace) - healthy_ns).epsilon(tolerance));
  }
}

TEST_CASE("stragglers: a heavy last stage is no slow worker") {
  const Trace trace = simulated(usual(), {"heavy-head:1"});
  for (const StragglerWorker& worker : found(trace).workers) CHECK(worker.verdict == StragglerVerdict::kFine);
  const CauseList list = causes_of(trace);
  REQUIRE(list.causes.size() == 1);
  CHECK(list.causes[0].place().stage == 3);
  CHECK(list.causes[0].figures.ratio == doctest::Approx(2).epsilon(0.02));
}

TEST_CASE("stragglers: long sequences show in every stage and blame no worker") {
  const Trace trace = simulated(usual(), {"long-sequences:0.2,2"});
  const Stragglers s = found(trace);
  for (const FbCorrelation& c : s.correlations) {
    CHECK(c.pairs == 16 * 4 * 6);
    CHECK(c.r > 0.98);
    CHECK(c.data_dependent);
  }
  const CauseList list = causes_of(trace);
  REQUIRE(!list.causes.empty());
  CHECK(list.causes[0].kind->id == "long_sequences");
  for (const StragglerWorker& worker : s.workers) CHECK(worker.verdict != StragglerVerdict::kPersistent);
}

TEST_CASE("stragglers: pauses of one rank are its own") {
  SimulateOptions o = usual();
  o.jitter = 0;
  o.steps = 16;
  const Trace trace = simulated(o, {"gc:20ms,0.125,3"});
  const Stragglers s = found(trace);
  const StragglerWorker& worker = s.workers[3];
  CHECK(worker.pauses >= 40);
  CHECK(worker.verdict == StragglerVerdict::kPauses);
  const CauseList list = causes_of(trace);
  REQUIRE(!list.causes.empty());
  CHECK(list.causes[0].kind->id == "pauses");
  CHECK(list.causes[0].figures.rank == 3);
}

TEST_CASE("stragglers: a slow step is named, and not mixed with the rest") {
  const Trace trace = simulated(usual(), {"slow-step:3,2"});
  const Stragglers s = found(trace);
  CHECK(causes_of(trace).causes.empty());
  REQUIRE(s.slow_steps.size() == 1);
  CHECK(s.slow_steps[0].step == 3);
  CHECK(s.slow_steps[0].ratio == doctest::Approx(2).epsilon(0.1));
  for (const StragglerWorker& worker : s.workers) CHECK(worker.steps == 5);
}

TEST_CASE("stragglers: without peers nobody is blamed") {
  SimulateOptions o = usual();
  o.dp = 1;
  const Trace trace = simulated(o, {"slow-rank:1,1.5"});
  const Stragglers s = found(trace);
  for (const StragglerWorker& worker : s.workers) {
    CHECK(worker.verdict == StragglerVerdict::kAlone);
    CHECK(std::isnan(worker.ratio));
  }
  const CauseList list = causes_of(trace);
  REQUIRE(list.causes.size() == 1);
  CHECK(list.causes[0].kind->id == "slow_stage");
}

TEST_CASE("stragglers: odd input is answered without words that are not so") {
  // Unknown stages and micro-batches, cells of no length, one cell that goes back in time, one step.
  Trace odd = simulated(usual());
  for (Part& part : odd.parts) part.stage = part.dp = kUnknown;
  link_cells(odd);
  CHECK(found(odd).workers.empty());
  odd = simulated(usual());
  std::fill(odd.cells.micro_batch.begin(), odd.cells.micro_batch.end(), kUnknown);
  link_cells(odd);
  CHECK(found(odd).correlations.empty());
  odd = simulated(usual());
  for (size_t i = 0; i < odd.cells.size(); ++i) odd.cells.end_ns[i] = odd.cells.start_ns[i];
  CHECK(causes_of(odd).causes.empty());
  odd = simulated(usual());
  odd.cells.end_ns[5] = odd.cells.start_ns[5] - 1'000'000;
  CHECK(found(odd).workers.size() == 16);
  odd = simulated(usual());
  std::fill(odd.cells.start_ns.begin(), odd.cells.start_ns.end(), 7);
  std::fill(odd.cells.end_ns.begin(), odd.cells.end_ns.end(), 7);
  odd.cells.sort();
  CHECK(causes_of(odd).causes.empty());
}
