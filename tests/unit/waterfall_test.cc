#include "pipeline/measure/waterfall.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/parallel.h"
#include "engine/engine.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/measure/frontier.h"
#include "pipeline/replay/replay.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "shared_data.h"
#include "unit/facts_of_trace.h"
#include "unit/make_trace.h"
#include "unit/simulated_run.h"

using namespace stageline;

namespace {

constexpr double kNs = 1.5;  // times are whole nanoseconds, means are not

Waterfall split(const Trace& trace) { return waterfall_of(trace, theory_of(trace), pipeline_sums(trace)); }

double part(const WaterfallStep& step, WaterfallPart p) { return step.part_ns[p]; }
double tail(const WaterfallStep& step, TailPart p) { return step.tail_ns[p]; }

void check_closes(const Waterfall& w) {
  for (const WaterfallStep& step : w.steps) {
    const double sum = std::accumulate(step.part_ns.begin(), step.part_ns.end(), 0.0);
    CHECK(std::abs(sum - step.span_ns) <= 1e-9 * step.span_ns);
    const double tails = std::accumulate(step.tail_ns.begin(), step.tail_ns.end(), 0.0);
    if (!w.clock_free) CHECK(std::abs(tails - part(step, WaterfallPart::kTail)) <= 1e-9 * step.span_ns);
  }
  for (const WaterfallStage& stage : w.stages) {
    const double sum = std::accumulate(stage.part_ns.begin(), stage.part_ns.end(), 0.0);
    CHECK(std::abs(sum - stage.pipeline_ns) <= 1e-9 * stage.pipeline_ns);
  }
}

double span_of(const Schedule& schedule, const ReplayCosts& costs) {
  const auto times = replay(schedule, costs);
  REQUIRE(times);
  int64_t max = 0;
  for (const auto& rank : *times)
    for (const ReplayedCell& cell : rank) max = std::max(max, cell.end_ns);
  return static_cast<double>(max);
}

}  // namespace

TEST_CASE("waterfall: a healthy run of every schedule is compute and schedule bubble, to the nanosecond") {
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(def->name);
    SimulateOptions o;
    o.schedule = schedule_of(def->name, 4, 12);
    o.dp = 2;
    const Waterfall w = split(simulated(o));
    REQUIRE(w.known());
    REQUIRE(w.steps.size() == 6);
    CHECK(w.broken == 0);
    CHECK(w.unnumbered == 0);
    CHECK(w.without_producer == 0);
    check_closes(w);
    ReplayCosts costs;
    costs.cell_ns = [&](int32_t, const ScheduleCell& cell) { return o.costs.of(cell); };
    double busy = 0;
    for (const RankOrder& order : o.schedule.ranks)
      for (const ScheduleCell& cell : order) busy += static_cast<double>(o.costs.of(cell)) / 4;
    const double span = span_of(o.schedule, costs);
    for (const WaterfallStep& step : w.steps) {
      CHECK(step.pipeline_ns == span);
      CHECK(std::abs(part(step, WaterfallPart::kCompute) - busy) < kNs);
      CHECK(std::abs(part(step, WaterfallPart::kSchedule) - (span - busy)) < kNs);
      for (const WaterfallPart zero :
           {WaterfallPart::kImbalance, WaterfallPart::kJitter, WaterfallPart::kLatency, WaterfallPart::kRest})
        CHECK(std::abs(part(step, zero)) < kNs);
      CHECK(step.order_ns == 0);
    }
  }
}

TEST_CASE("waterfall: a slow stage alone is imbalance") {
  // 1F1B of p stages and m micro-batches takes (m + p − 1) c with equal costs c of F and B together. When the last
  // stage takes c' and the others c it takes (m − 1) c' + the sum of all. Here each micro-batch takes 30 ms, on stage 3
  // 45 ms: mean 33.75 ms.
  SimulateOptions o;
  o.schedule = schedule_of("1f1b", 4, 8);
  o.faults = {{"slow-stage", 3, 1.5}};
  const Waterfall w = split(simulated(o));
  check_closes(w);
  for (const WaterfallStep& step : w.steps) {
    CHECK(step.pipeline_ns == 7 * 45e6 + 135e6);
    CHECK(std::abs(part(step, WaterfallPart::kCompute) - 8 * 33.75e6) < kNs);
    CHECK(std::abs(part(step, WaterfallPart::kSchedule) - 3 * 33.75e6) < kNs);
    CHECK(std::abs(part(step, WaterfallPart::kImbalance) - 7 * (45e6 - 33.75e6)) < kNs);
    CHECK(std::abs(part(step, WaterfallPart::kRest)) < kNs);
    CHECK(std::abs(part(step, WaterfallPart::kJitter)) < kNs);
    CHECK(std::abs(part(step, WaterfallPart::kLatency)) < kNs);
  }
  // The stage that the others wait for waits less than it would with equal costs.
  REQUIRE(w.stages.size() == 4);
  const auto imbalance = [&](size_t s) { return w.stages[s].part_ns[WaterfallPart::kImbalance]; };
  CHECK(std::abs(imbalance(3) - (78.75e6 - 8 * 11.25e6)) < kNs);
  CHECK(std::abs(imbalance(0) - (78.75e6 + 8 * 3.75e6)) < kNs);
  CHECK(std::abs(w.stages[3].part_ns[0] - 8 * 45e6) < kNs);

  for (const ScheduleDef* def : schedules()) {
    CAPTURE(def->name);
    o.schedule = schedule_of(def->name, 4, 12);
    for (const WaterfallStep& step : split(simulated(o)).steps) {
      CHECK(part(step, WaterfallPart::kImbalance) > 0);
      CHECK(std::abs(part(step, WaterfallPart::kRest)) < kNs);
      CHECK(std::abs(part(step, WaterfallPart::kJitter)) < kNs);
      CHECK(std::abs(part(step, WaterfallPart::kLatency)) < kNs);
    }
  }
}

TEST_CASE("waterfall: latency alone is message latency") {
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(def->name);
    SimulateOptions o;
    o.schedule = schedule_of(def->name, 4, 12);
    ReplayCosts costs;
    costs.cell_ns = [&](int32_t, const ScheduleCell& cell) { return o.costs.of(cell); };
    const double span = span_of(o.schedule, costs);
    o.costs.latency_ns = costs.latency_ns = 700'000;
    const double with_latency = span_of(o.schedule, costs);
    REQUIRE(with_latency > span);
    const Waterfall w = split(simulated(o));
    check_closes(w);
    for (const WaterfallStep& step : w.steps) {
      CHECK(std::abs(part(step, WaterfallPart::kLatency) - (with_latency - span)) < kNs);
      CHECK(std::abs(part(step, WaterfallPart::kRest)) < kNs);
      CHECK(std::abs(part(step, WaterfallPart::kImbalance)) < kNs);
      CHECK(std::abs(step.held_ns) < kNs);
    }
    CHECK(w.latency.median_ns == 700'000);
    CHECK(w.latency.by_messages == 0);
  }
}

TEST_CASE("waterfall: jitter alone is jitter") {
  for (const char* name : {"1f1b", "vpp", "zb-h1", "zb-v", "dualpipe", "dualpipe-v"}) {
    CAPTURE(name);
    SimulateOptions o;
    o.schedule = schedule_of(name, 4, 12);
    o.jitter = 0.1;
    o.steps = 1;
    const Trace trace = simulated(o);
    const Waterfall w = split(trace);
    check_closes(w);
    const WaterfallStep& step = w.steps.at(0);
    CHECK(std::abs(part(step, WaterfallPart::kLatency)) < kNs);
    CHECK(std::abs(part(step, WaterfallPart::kRest)) < kNs);
    // The rest of the span with every (stage, chunk, kind) at its mean: replayed by the schedule's own replay.
    const TheoryRun theory = theory_of(trace);
    REQUIRE(theory.sizes.size() == 1);
    const auto expected = static_cast<double>(theory.numbers(0, theory.sizes[0]).span_ns);
    CHECK(std::abs(part(step, WaterfallPart::kJitter) - (step.pipeline_ns - expected)) < 200);  // its means are rounded
  }
}

TEST_CASE("waterfall: an optimizer alone is tail") {
  SimulateOptions o;
  o.schedule = schedule_of("1f1b", 4, 8);
  o.optimizer_ns = 40'000'000;
  o.reduce_ns = 7'000'000;
  o.dp = 2;
  o.faults = {{"slow-rank", 0, 1.5}};  // of replica 0: replica 1 waits for it
  const Waterfall w = split(simulated(o));
  check_closes(w);
  REQUIRE(w.steps.size() == 6);
  const WaterfallStep &slow = w.steps[0], &fast = w.steps[1];
  CHECK(slow.dp == 0);
  // The slow rank's optimizer is slow too: 60 ms.
  CHECK(tail(slow, TailPart::kOptimizer) == 60'000'000);
  CHECK(tail(slow, TailPart::kIdle) == 7'000'000);
  CHECK(tail(slow, TailPart::kReplicas) == 0);
  CHECK(tail(fast, TailPart::kReplicas) == slow.pipeline_ns - fast.pipeline_ns);
  CHECK(tail(fast, TailPart::kOptimizer) == 40'000'000);
  CHECK(tail(fast, TailPart::kIdle) == 27'000'000);
  CHECK(std::abs(part(fast, WaterfallPart::kImbalance)) < kNs);
  CHECK(slow.span_ns == fast.span_ns);
}

TEST_CASE("waterfall: closes with everything at once, whatever the number of threads") {
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(def->name);
    SimulateOptions o;
    o.schedule = schedule_of(def->name, 4, 12);
    o.dp = 2;
    o.peers = 2;
    o.steps = 5;
    o.jitter = 0.2;
    o.costs.latency_ns = 300'000;
    o.optimizer_ns = 5'000'000;
    o.reduce_ns = 3'000'000;
    o.faults = {{"slow-stage", 3, 1.3}, {"slow-rank", 1, 1.2}};
    const Trace trace = simulated(o);
    set_thread_count(1);
    const Waterfall one = split(trace);
    set_thread_count(4);
    const Waterfall four = split(trace);
    set_thread_count(0);
    check_closes(one);
    REQUIRE(one.steps.size() == four.steps.size());
    for (size_t i = 0; i < one.steps.size(); ++i) {
      CHECK(one.steps[i].part_ns == four.steps[i].part_ns);
      CHECK(std::abs(part(one.steps[i], WaterfallPart::kRest)) < 0.002 * one.steps[i].pipeline_ns);
    }
  }
}

TEST_CASE("waterfall: what a wrong order costs is told beside the schedule bubble") {
  SimulateOptions o;
  o.schedule = schedule_of("1f1b", 4, 8);
  ReplayCosts costs;
  costs.cell_ns = [&](int32_t, const ScheduleCell& cell) { return o.costs.of(cell); };
  const double right = span_of(o.schedule, costs);
  RankOrder& first = o.schedule.ranks[0];
  // F0 F1 F2 F3 B0 F4 … becomes F0 F1 F2 B0 F3 F4 …: stage 0 holds its fourth micro-batch back.
  std::swap(first[3], first[4]);
  const double wrong = span_of(o.schedule, costs);
  REQUIRE(wrong > right);
  const Waterfall w = split(simulated(o));
  check_closes(w);
  for (const WaterfallStep& step : w.steps) {
    CHECK(std::abs(step.order_ns - (wrong - right)) < kNs);
    CHECK(std::abs(part(step, WaterfallPart::kRest)) < kNs);
    CHECK(std::abs(part(step, WaterfallPart::kSchedule) - (wrong - 8 * 30e6)) < kNs);
  }
}

TEST_CASE("waterfall: an order that no schedule has is replayed as it ran") {
  SimulateOptions o;
  o.schedule = schedule_of("1f1b", 3, 6);
  // Backwards in reverse on every rank, forwards first: no schedule of ours.
  for (RankOrder& order : o.schedule.ranks) {
    order.clear();
    for (int32_t i = 0; i < 6; ++i) order.emplace_back(Action{CellKind::kForward, (i * 5 + 2) % 6, 0});
    for (int32_t i = 0; i < 6; ++i) order.emplace_back(Action{CellKind::kBackward, (i * 5 + 1) % 6, 0});
  }
  o.faults = {{"slow-stage", 1, 1.5}};
  const Waterfall w = split(simulated(o));
  REQUIRE(w.known());
  check_closes(w);
  for (const WaterfallStep& step : w.steps) CHECK(std::abs(part(step, WaterfallPart::kRest)) < kNs);
}

TEST_CASE("waterfall: recorded messages say what latency is, and receives hold ranks up") {
  // Two stages, two micro-batches: F 10, B 20, messages 2; stage 1 sits 2 in the receive of F1 though it came long ago.
  Trace trace;
  trace.clock = ClockState::kShared;
  trace.parts.resize(2);
  for (int32_t r = 0; r < 2; ++r) {
    trace.parts[r].rank = trace.parts[r].stage = r;
    trace.parts[r].dp = 0;
  }
  using K = CellKind;
  const auto add = [&](int32_t r, K kind, int32_t mb, int64_t from, int64_t to) {
    trace.cells.add({0, r, kind, 0, mb, from, to, kNoSlice});
  };
  add(0, K::kForward, 0, 0, 10);
  add(0, K::kSendForward, 0, 10, 12);
  add(0, K::kForward, 1, 10, 20);
  add(0, K::kSendForward, 1, 20, 44);
  add(1, K::kRecvForward, 0, 0, 12);
  add(1, K::kForward, 0, 12, 22);
  add(1, K::kBackward, 0, 22, 42);
  add(1, K::kSendBackward, 0, 42, 44);
  add(1, K::kRecvForward, 1, 42, 44);
  add(0, K::kRecvBackward, 0, 20, 44);
  add(0, K::kBackward, 0, 44, 64);
  add(1, K::kForward, 1, 44, 54);
  add(1, K::kBackward, 1, 54, 74);
  add(1, K::kSendBackward, 1, 74, 76);
  add(0, K::kRecvBackward, 1, 64, 76);
  add(0, K::kBackward, 1, 76, 96);
  trace.cells.sort();
  link_cells(trace);
  const Waterfall w = split(trace);
  check_closes(w);
  CHECK(w.latency.by_messages == 2);
  CHECK(w.latency.median_ns == 2);
  const WaterfallStep& step = w.steps.at(0);
  CHECK(part(step, WaterfallPart::kCompute) == 60);
  CHECK(part(step, WaterfallPart::kSchedule) == 30);
  CHECK(part(step, WaterfallPart::kLatency) == 6);
  CHECK(step.held_ns == 2);
  CHECK(part(step, WaterfallPart::kRest) == 0);

  // A gap that a message cannot explain stays in the rest.
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.part[i] == 0 && trace.cells.kind[i] == K::kBackward && trace.cells.micro_batch[i] == 1)
      trace.cells.start_ns[i] += 50, trace.cells.end_ns[i] += 50;
  const WaterfallStep late = split(trace).steps.at(0);
  CHECK(part(late, WaterfallPart::kLatency) == 8);  // twice the usual of its link at most
  CHECK(part(late, WaterfallPart::kRest) == 48);
}

TEST_CASE("waterfall: ranks that share no clock are split on their own") {
  SimulateOptions o;
  o.schedule = schedule_of("1f1b", 4, 8);
  o.faults = {{"slow-stage", 2, 1.5}};
  o.optimizer_ns = 4'000'000;
  Trace trace = simulated(o);
  const Waterfall together = split(trace);
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const int64_t zero = 1'000'000'000LL * trace.cells.part[i] + 400'000'000;
    trace.cells.start_ns[i] -= zero;
    trace.cells.end_ns[i] -= zero;
  }
  trace.clock = ClockState::kPerRank;
  const Waterfall apart = split(trace);
  REQUIRE(apart.clock_free);
  check_closes(apart);
  REQUIRE(apart.steps.size() == together.steps.size());
  for (size_t i = 0; i < apart.steps.size(); ++i) {
    for (size_t k = 0; k < kPipelineParts; ++k)
      CHECK(std::abs(apart.steps[i].part_ns[k] - together.steps[i].part_ns[k]) < kNs);
    // Rank 0 has the whole pipeline and 4 ms of optimizer; that stage 2 takes 6 ms for it is on no other rank's clock.
    CHECK(std::abs(part(apart.steps[i], WaterfallPart::kTail) - 4e6) < kNs);
    CHECK(std::abs(part(together.steps[i], WaterfallPart::kTail) - 6e6) < kNs);
    CHECK(std::isnan(apart.steps[i].tail_ns[0]));
  }
}

TEST_CASE("waterfall: hostile cells") {
  SimulateOptions o;
  o.schedule = schedule_of("1f1b", 4, 8);
  const auto with = [&](auto change) {
    Trace trace = simulated(o);
    for (size_t i = 0; i < trace.cells.size(); ++i) change(trace, i);
    trace.cells.sort();
    link_cells(trace);
    const Waterfall w = split(trace);
    if (w.known()) check_closes(w);
    return w;
  };
  CHECK(with([](Trace& t, size_t i) { t.cells.micro_batch[i] = kUnknown; }).unnumbered > 0);
  CHECK_FALSE(with([](Trace& t, size_t i) { t.cells.step[i] = kUnknown; }).known());
  CHECK(with([](Trace& t, size_t i) { t.cells.start_ns[i] = t.cells.end_ns[i] = 5; }).known());
  with([](Trace& t, size_t i) { std::swap(t.cells.start_ns[i], t.cells.end_ns[i]); });
  with([](Trace& t, size_t i) { t.cells.end_ns[i] += 40'000'000; });  // every cell overlaps the next ones
  with([](Trace& t, size_t i) { t.cells.start_ns[i] = i % 2 ? INT64_MIN / 4 : INT64_MAX / 4; });
  with([](Trace& t, size_t i) { t.cells.micro_batch[i] = i % 7 ? 2'000'000'000 : 0; });
  with([](Trace& t, size_t i) { t.cells.chunk[i] = static_cast<int32_t>(i % 5); });
  with([](Trace& t, size_t i) { t.cells.part[i] = 0; });
  // Stage 0 runs its forwards last first: its order contradicts what stage 1 has run.
  const Waterfall circles = with([](Trace& t, size_t i) {
    if (t.cells.part[i] == 0) t.cells.start_ns[i] = -t.cells.start_ns[i], t.cells.end_ns[i] = t.cells.start_ns[i] + 10;
  });
  CHECK(circles.broken > 0);
  CHECK_FALSE(split(Trace{}).known());
}

TEST_CASE("frontier: the longest of the ranks' own times, phase by phase") {
  SimulateOptions o;
  o.schedule = schedule_of("1f1b", 4, 8);
  o.optimizer_ns = 4'000'000;
  const Trace trace = simulated(o);
  const Frontier f = frontier_of(trace, {});
  CHECK(f.pipelines == 3);
  // Rank 0: F0…F3, then the others' way down and up (3 · 10 + 3 · 20 after F0 and B0 of the last stage) until B0.
  const auto exposed = [&](FrontierPhase p) { return f.phases[p].exposed_ns; };
  CHECK(exposed(FrontierPhase::kBefore) == 0);
  CHECK(exposed(FrontierPhase::kWarmUp) == 100e6);
  CHECK(f.phases[1].stage == 0);
  CHECK(f.phases[1].stage_share == 1);
  double sum = 0;
  for (const FrontierSum& phase : f.phases) sum += phase.exposed_ns;
  CHECK(sum == 11 * 30e6 + 4e6);
  CHECK(exposed(FrontierPhase::kAfter) == 4e6);
  CHECK(frontier_of(trace, {0, 1, 2}).pipelines == 0);
}

TEST_CASE("waterfall: real jobs") {
  struct Real {
    const char* file;
    double compute, schedule, imbalance, jitter, latency, rest;  // of the prototype; below 0 compute: none
  };
  // The prototype has one number for latency and no receives that delay a rank: its rest includes them.
  for (const Real& real :
       {Real{"bytedance/trace-ST.csv.gz", 48.6, 36.4, 14.9, -0.1, 0.1, 0.1},
        Real{"bytedance/trace-SE.csv.gz", 74.6, 9.3, 13.0, 2.0, 0.2, 0.8},
        Real{"megatronapp/dpp-aggregated.json.gz", -1, 0, 0, 0, 0, 0}, Real{"primus_pp8", -1, 0, 0, 0, 0, 0}}) {
    const std::string path = shared_data(std::string("pipeline_ops/") + real.file);
    if (path.empty()) continue;
    CAPTURE(std::string(real.file));
    OpenOptions options;
    options.align.mode = AlignMode::kAuto;
    const Result<Trace> trace = open_trace({path}, options);
    REQUIRE(trace);
    const Waterfall w = split(*trace);
    REQUIRE(w.known());
    check_closes(w);
    CHECK(w.broken == 0);
    const WaterfallStep mean = mean_of(w);
    const auto percent = [&](double ns) { return 100 * ns / mean.pipeline_ns; };
    CHECK(std::abs(percent(part(mean, WaterfallPart::kRest))) <= 1);
    if (real.compute < 0) continue;
    const auto near = [&](double ns, double expected, double within) {
      CHECK(std::abs(percent(ns) - expected) <= within);
    };
    near(part(mean, WaterfallPart::kCompute), real.compute, 0.05);
    near(part(mean, WaterfallPart::kSchedule), real.schedule, 0.05);
    near(part(mean, WaterfallPart::kImbalance), real.imbalance, 0.05);
    near(part(mean, WaterfallPart::kJitter), real.jitter, 0.051);
    near(part(mean, WaterfallPart::kLatency) - mean.held_ns, real.latency, 0.15);
    near(part(mean, WaterfallPart::kRest) + mean.held_ns, real.rest, 0.15);
  }
}

TEST_CASE("waterfall: the headline's parts are the waterfall's, and add up") {
  SimulateOptions o;
  o.schedule = schedule_of("1f1b", 4, 8);
  o.dp = 2;
  o.jitter = 0.05;
  o.costs.latency_ns = 500'000;
  o.optimizer_ns = 9'000'000;
  o.faults = {{"slow-stage", 3, 1.5}, {"slow-rank", 0, 1.1}};
  Trace trace = simulated(o);
  const WaterfallStep mean = mean_of(split(trace));
  const auto ids_of = [](const Headline& headline) {
    std::vector<std::string> ids;
    double sum = 0;
    for (const SpanPart& p : headline.parts) {
      ids.push_back(p.id);
      CHECK_FALSE(p.label.empty());
      CHECK_FALSE(p.label.zh.empty());
      sum += p.share;
    }
    CHECK(std::abs(sum - 1) < 1e-9);
    return ids;
  };
  const Headline headline = find_findings(trace).headline;
  CHECK(ids_of(headline) == std::vector<std::string>{"compute", "bubble", "imbalance", "jitter", "message", "replicas",
                                                     "tail", "rest", "between"});
  // Shares are of the period: the step's, less the time between steps.
  CHECK(headline.parts[2].share ==
        doctest::Approx((1 - headline.parts[8].share) * part(mean, WaterfallPart::kImbalance) / mean.span_ns));
  // The share in the sentence is that of the bar.
  CHECK(headline.title.en.find(std::to_string(std::lround(100 - 100 * headline.parts[0].share)) + "\u202f%") !=
        std::string::npos);

  // Without the ranks of three stages, the waits of the fourth one are unknown.
  filter_trace(trace, {1, 5}, INT64_MIN, INT64_MAX);
  link_cells(trace);
  CHECK(ids_of(find_findings(trace).headline) == std::vector<std::string>{"compute", "waiting", "outside", "between"});
}
