#include "pipeline/replay/step_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/engine.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/measure/slowdown.h"
#include "pipeline/replay/graph_path.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "unit/facts_of_trace.h"
#include "unit/make_trace.h"
#include "unit/shared_data.h"

using namespace stageline;
using stageline::testing::add_named_cell;

namespace {

constexpr int64_t kMs = 1'000'000;

StepGraph graph_of(const Trace& trace, LaunchRule rule = LaunchRule::kFree) {
  Diagnostics notes;
  Result<StepGraph> graph = build_step_graph(trace, notes, rule);
  REQUIRE(graph);
  return std::move(*graph);
}

uint32_t find_op(const StepGraph& graph, int32_t part, CellKind kind) {
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (graph.part[i] == part && graph.kind[i] == kind) return i;
  FAIL("no such operation");
  return 0;
}

Trace simulated(const char* name, SimulateOptions o, ScheduleSizes sizes = {.stages = 4, .micro_batches = 8}) {
  for (const ScheduleDef* def : schedules())
    if (def->name == std::string_view(name) && sizes.chunks < def->default_chunks) sizes.chunks = def->default_chunks;
  Result<Schedule> schedule = make_schedule(name, sizes);
  REQUIRE(schedule);
  o.schedule = std::move(*schedule);
  Result<SimulatedRun> run = simulate_run(o);
  REQUIRE(run);
  run->trace.cells.sort();
  link_cells(run->trace);
  return std::move(run->trace);
}

// Checks the properties of every graph: order, groups, and a replay of the recorded times.
void check_graph(const StepGraph& graph) {
  const OpTimes recorded = recorded_times(graph);
  const WorldTimes times = replay_worlds(graph, std::span(&recorded, 1));
  const ReplayedOps ops = replay_ops(graph, recorded);
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    const GraphStep& step = graph.steps[s];
    CHECK(times.ns(s, 0) == static_cast<double>(step.span_ns));
    const std::vector<PathStretch> path = critical_path(graph, step);
    int64_t at = 0;
    for (const PathStretch& stretch : path) {
      CHECK(stretch.start_ns == at);
      CHECK(stretch.end_ns > at);
      at = stretch.end_ns;
    }
    CHECK(at == step.span_ns);
    int64_t displaced = 0;
    for (uint32_t i = step.begin; i < step.end; ++i) {
      if (ops.end_ns[i] != static_cast<double>(graph.ended_ns(i))) ++displaced;
      const uint32_t unit = graph.group(i) == kNoGroup ? i : graph.groups[graph.group(i)].begin;
      for (const uint32_t on : graph.waits(i)) CHECK(on < unit);
    }
    CHECK(displaced == 0);
  }
}

double s_of(const std::vector<SlowdownPart>& parts, const std::string& name) {
  for (const SlowdownPart& part : parts)
    if (part.name == name) return part.s;
  return -1;
}

}  // namespace

TEST_CASE("step graph: durations without waiting, delays and groups, by hand") {
  const Trace trace = testing::two_stages();
  const StepGraph graph = graph_of(trace);
  CHECK(graph.source == GraphSource::kOperations);
  REQUIRE(graph.size() == 10);
  CHECK(graph.groups.size() == 2);
  REQUIRE(graph.steps.size() == 1);
  CHECK(graph.steps[0].span_ns == 700 * kMs);
  const auto check = [&](int32_t part, CellKind kind, int64_t dur, int64_t delay) {
    const uint32_t op = find_op(graph, part, kind);
    CAPTURE(graph.types[graph.type[op]].name);
    CHECK(graph.dur_ns[op] == static_cast<double>(dur * kMs));
    CHECK(graph.delay_ns[op] == static_cast<double>(delay * kMs));
  };
  check(0, CellKind::kForward, 80, 0);
  check(0, CellKind::kSendForward, 60, 0);
  check(1, CellKind::kRecvForward, 50, 20);    // its sender began at 80
  check(0, CellKind::kRecvBackward, 25, 100);  // its sender began at 495
  check(1, CellKind::kForward, 120, 5);
  check(1, CellKind::kOptimizer, 20, 5);
  check_graph(graph);
  check_graph(graph_of(trace, LaunchRule::kInOrder));
}

TEST_CASE("slowdown: worlds by hand") {
  const Trace trace = testing::two_stages();
  const StepGraph graph = graph_of(trace);
  const Slowdown s = slowdown(trace, graph);
  // Fair: forward 100, backward 200, optimizer 20; the messages are single.
  CHECK(s.actual_ns == 700.0 * kMs);
  CHECK(s.no_delay_ns == 695.0 * kMs);  // 80 + 50 + 120 + 240 + 25 + 160 + 20
  CHECK(s.ideal_ns == 695.0 * kMs);     // 100 + 50 + 100 + 200 + 25 + 200 + 20
  CHECK(s.s == 1.0);
  CHECK(std::isnan(s.m_s));  // nothing was lost that could have shares
  CHECK(std::isnan(s.m_w));
  REQUIRE(s.stages.size() == 2);
  CHECK(s.stages[0].s == doctest::Approx(635.0 / 695));  // 80 + 50 + 100 + 200 + 25 + 160 + 20
  CHECK(s.stages[1].s == doctest::Approx(755.0 / 695));
  REQUIRE(s.workers.size() == 2);
  CHECK(s.workers[0].s == doctest::Approx(635.0 / 695));
  CHECK(s.workers[1].s == 1.0);  // its replica, which is all there is
  CHECK(s.workers[1].replaced);
  CHECK(s_of(s.types, "forward-compute") == 1.0);
  CHECK(s_of(s.types, "forward-pp-comm") == 1.0);
}

TEST_CASE("pipeline-critical-path: path and slack by hand") {
  const StepGraph graph = graph_of(testing::two_stages(), LaunchRule::kInOrder);
  const std::vector<PathStretch> path = critical_path(graph, graph.steps[0]);
  std::vector<std::pair<CellKind, int64_t>> found;
  for (const PathStretch& p : path) found.emplace_back(graph.kind[p.op], (p.end_ns - p.start_ns) / kMs);
  const std::vector<std::pair<CellKind, int64_t>> expected = {{CellKind::kForward, 80},   {CellKind::kRecvForward, 50},
                                                              {CellKind::kForward, 5},    {CellKind::kForward, 120},
                                                              {CellKind::kBackward, 240}, {CellKind::kRecvBackward, 25},
                                                              {CellKind::kBackward, 160}, {CellKind::kOptimizer, 20}};
  CHECK(found == expected);
  CHECK(path[2].piece == PathPiece::kDelay);
  CHECK(path[1].piece == PathPiece::kTransfer);
  CHECK(graph.kind[path[1].peer] == CellKind::kSendForward);
  const std::vector<int64_t> slack = slack_ns(graph);
  for (const PathStretch& p : path)
    if (p.piece != PathPiece::kDelay) CHECK(slack[p.op] == 0);
  CHECK(slack[find_op(graph, 1, CellKind::kOptimizer)] == 180 * kMs);
  CHECK(slack[find_op(graph, 0, CellKind::kSendForward)] == 560 * kMs);
  CHECK(slack[find_op(graph, 1, CellKind::kSendBackward)] == 185 * kMs);
}

TEST_CASE("pipeline-critical-path: an operation may grow by its slack and no more") {
  SimulateOptions o;
  o.jitter = 0.1;
  o.steps = 1;
  o.costs.latency_ns = kMs;
  const StepGraph graph = graph_of(simulated("1f1b", o));
  const std::vector<int64_t> slack = slack_ns(graph);
  int64_t wrong = 0;
  const auto span = static_cast<double>(graph.steps[0].span_ns);
  for (size_t i = 0; i < graph.size(); ++i) {
    OpTimes more = recorded_times(graph);
    more.dur_ns[i] += static_cast<double>(slack[i]);
    if (replay_worlds(graph, std::span(&more, 1)).ns(0, 0) > span) ++wrong;
    more.dur_ns[i] += 5;
    if (graph.closes(i) && replay_worlds(graph, std::span(&more, 1)).ns(0, 0) <= span) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("step graph: a replay of simulated runs is the run") {
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(def->name);
    SimulateOptions o;
    o.dp = 2;
    o.jitter = 0.05;
    o.optimizer_ns = 3 * kMs;
    o.costs.latency_ns = 300'000;
    check_graph(graph_of(simulated(def->name, o)));
  }
}

TEST_CASE("step graph: without latency and jitter there is no delay and nothing is slow") {
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(def->name);
    SimulateOptions o;
    o.dp = 2;
    o.optimizer_ns = 3 * kMs;
    o.reduce_ns = 2 * kMs;
    const Trace trace = simulated(def->name, o);
    const StepGraph graph = graph_of(trace);
    CHECK(graph.source == GraphSource::kComputeCells);
    CHECK(std::count(graph.delay_ns.begin(), graph.delay_ns.end(), 0.0) == static_cast<int64_t>(graph.size()));
    const Slowdown s = slowdown(trace, graph);
    CHECK(s.s == doctest::Approx(1));
    CHECK(s.delay_s == doctest::Approx(1));
  }
}

TEST_CASE("slowdown: a slow worker and a slow last stage are found with their price") {
  SimulateOptions o;
  o.dp = 8;
  o.costs.latency_ns = 300'000;
  const Trace healthy = simulated("1f1b", o);
  const Slowdown before = slowdown(healthy, graph_of(healthy));
  o.faults = {{"slow-rank", 9, 1.8}};  // replica 2, stage 1
  {
    const Trace trace = simulated("1f1b", o);
    const StepGraph graph = graph_of(trace);
    const Slowdown s = slowdown(trace, graph);
    CHECK(s.m_w > 0.9);
    CHECK(s.m_s < 0.1);
    for (const SlowdownWorker& worker : s.workers) CHECK(worker.replaced == (trace.parts[worker.part].rank == 9));
    CHECK(s.actual_ns > 1.3 * before.actual_ns);
  }
  o.faults = {{"slow-stage", 3, 1.8}};
  {
    const Trace trace = simulated("1f1b", o);
    const Slowdown s = slowdown(trace, graph_of(trace));
    CHECK(s.m_s > 0.9);
    CHECK(s.m_w < 0.1);
    CHECK(s.stages[3].s > s.stages[1].s + 0.1);
  }
}

TEST_CASE("step graph: the same bytes whatever the number of worlds beside it") {
  SimulateOptions o;
  o.jitter = 0.1;
  o.dp = 2;
  const StepGraph graph = graph_of(simulated("zb-h1", o));
  const OpTimes recorded = recorded_times(graph);
  const std::vector<OpTimes> many(37, recorded);
  const WorldTimes one = replay_worlds(graph, std::span(&recorded, 1)), all = replay_worlds(graph, many);
  for (size_t s = 0; s < graph.steps.size(); ++s)
    for (size_t w = 0; w < many.size(); ++w) CHECK(all.ns(s, w) == one.ns(s, 0));
}

TEST_CASE("step graph: a replay that misses the recorded steps is refused") {
  // Rank 0's backward waits for rank 1's according to the links, and yet started a whole step before it: the time added
  // by waits does not count as delay.
  Trace trace;
  trace.clock = ClockState::kShared;
  trace.parts.resize(2);
  trace.parts[0].stage = trace.parts[0].dp = trace.parts[1].dp = 0;
  trace.parts[1].stage = trace.parts[1].rank = 1;
  trace.cells.add({0, 1, CellKind::kBackward, 0, 0, 100 * kMs, 180 * kMs, kNoSlice});
  trace.cells.add({0, 0, CellKind::kBackward, 0, 0, 0, 80 * kMs, kNoSlice});
  trace.cells.sort();
  link_cells(trace);
  REQUIRE(trace.links.size() == 1);
  Diagnostics notes;
  const Result<StepGraph> graph = build_step_graph(trace, notes);
  REQUIRE_FALSE(graph);
  CHECK(graph.error().code == ErrorCode::kBadInput);
  CHECK(graph.error().what.find("misses its steps by 44") != std::string::npos);  // 260 ms instead of 180
  CHECK_FALSE(build_step_graph(trace, notes, LaunchRule::kInOrder));
  // With the stamps put right the same cells are taken.
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.part[i] == 0) trace.cells.start_ns[i] += 185 * kMs, trace.cells.end_ns[i] += 185 * kMs;
  CHECK(build_step_graph(trace, notes));
}

TEST_CASE("step graph: recorded operations whose steps lack work give way to compute cells") {
  Trace trace = testing::two_stages();
  link_cells(trace);
  CHECK(graph_of(trace).source == GraphSource::kOperations);
  CHECK(graph_of(trace).steps[0].span_ns == 700 * kMs);
  // An optimizer by a name that no rule knows ends the step 50 ms later.
  add_named_cell(trace, {7, 1, CellKind::kOptimizer, 0, 0, 520 * kMs, 750 * kMs}, "adam");
  trace.cells.sort();
  link_cells(trace);
  const StepGraph graph = graph_of(trace);
  CHECK(graph.source == GraphSource::kComputeCells);
  CHECK(graph.steps[0].span_ns == 750 * kMs);
  check_graph(graph);
}

TEST_CASE("step graph: hostile cells") {
  SUBCASE("nothing") {
    Diagnostics notes;
    CHECK_FALSE(build_step_graph(Trace{}, notes));
  }
  SUBCASE("links in a circle, cells backwards in time, unknown places") {
    Trace trace = stageline::testing::make_1f1b_trace({.stages = 3, .micro_batches = 4, .steps = 2});
    link_cells(trace);
    const std::vector<Link> links = trace.links;
    for (const Link& link : links) trace.links.push_back({link.to_cell, link.from_cell});
    std::swap(trace.cells.start_ns[3], trace.cells.end_ns[3]);
    trace.cells.step[5] = kUnknown;
    trace.parts[1].stage = kUnknown;
    trace.parts[2].dp = kUnknown;
    trace.cells.sort();
    Diagnostics notes;
    const Result<StepGraph> graph = build_step_graph(trace, notes);
    REQUIRE(graph);
    CHECK(notes.count("graph.cut_waits") > 0);
    const Slowdown s = slowdown(trace, *graph);
    CHECK(std::isfinite(s.s));
    for (const GraphStep& step : graph->steps) critical_path(*graph, step);
    slack_ns(*graph);
  }
  SUBCASE("a hundred thousand cells at one moment") {
    Trace trace;
    trace.clock = ClockState::kShared;
    trace.parts.resize(2);
    trace.parts[0].stage = trace.parts[0].dp = trace.parts[1].dp = 0;
    trace.parts[1].stage = trace.parts[1].rank = 1;
    for (int32_t i = 0; i < 100'000; ++i) trace.cells.add({0, i & 1, CellKind::kForward, 0, i / 2, 5, 5, kNoSlice});
    trace.cells.sort();
    link_cells(trace);
    const StepGraph graph = graph_of(trace);
    CHECK(graph.steps[0].span_ns == 0);
    CHECK(critical_path(graph, graph.steps[0]).empty());
    slowdown(trace, graph);
    slack_ns(graph);
  }
  SUBCASE("recorded operations with messages missing") {
    Trace trace = testing::two_stages();
    trace.cells.filter([&](size_t i) { return trace.cells.kind[i] != CellKind::kSendBackward; });
    const StepGraph graph = graph_of(trace);
    CHECK(graph.groups.size() == 1);
    check_graph(graph);
  }
}

// The answers that the artifact of the paper recorded for its own jobs, which it stores in 32-bit floats.
TEST_CASE("slowdown: the recorded answers of real jobs") {
  struct Answer {
    const char* job;
    double s, delay_s, m_s, m_w;
    std::map<std::string, double> types;
    std::vector<double> stages, replicas;
  };
  const std::vector<Answer> answers = {
      {"ST",
       1.1787021836556841,
       1.01921617557204,
       1.2193563788811714,
       0.031404269124045224,
       {{"forward-compute", 1.0874989663025318},
        {"backward-compute", 1.074156472437866},
        {"embedding-grads-all-reduce", 1.0095504024370303},
        {"grads-reduce-scatter", 1.00266695254219},
        {"optimizer-clip-main-grad", 1.0023506224771044},
        {"optimizer", 1.0014767395023902},
        {"params-all-gather", 1.0011307740825817},
        {"layernorm-grads-all-reduce", 1.0000026919173086},
        {"gc", 1.0},
        {"backward-pp-comm", 0.999992994223364},
        {"forward-pp-comm", 0.9998586213458615}},
       {0.9980450635272368, 0.9830562530894704, 0.9824931309511952, 1.2322559543157936},
       {1.1730828198099532, 1.1778704237064905}},
      {"SE",
       1.5373613711484118,
       1.0051223070910291,
       0.6877108929755429,
       0.025062266911209777,
       {{"backward-compute", 1.412770613588},
        {"forward-compute", 1.145963507348328},
        {"embedding-grads-all-reduce", 1.001754713787978},
        {"grads-reduce-scatter", 1.0004516377173556},
        {"optimizer-clip-main-grad", 1.000352779092975},
        {"backward-pp-comm", 1.0002539364514438},
        {"forward-pp-comm", 1.0001717021645775},
        {"params-all-gather", 1.0000941109395325},
        {"optimizer", 1.0000224827569455},
        {"layernorm-grads-all-reduce", 1.0000057875741377},
        {"gc", 1.0}},
       {1.1678121027453754, 1.4354480066634938},
       {}}};
  for (const Answer& answer : answers) {
    CAPTURE(answer.job);
    const std::string path = shared_data("pipeline_ops/bytedance/trace-" + std::string(answer.job) + ".csv.gz");
    if (path.empty()) continue;
    const Result<Trace> trace = open_trace({path}, {});
    REQUIRE(trace);
    const StepGraph graph = graph_of(*trace);
    const Slowdown s = slowdown(*trace, graph);
    const auto near = [](double a, double b) { return std::abs(a - b) < 1e-6; };
    CHECK(near(s.s, answer.s));
    CHECK(near(s.delay_s, answer.delay_s));
    CHECK(near(s.m_s, answer.m_s));
    CHECK(near(s.m_w, answer.m_w));
    CHECK(s.types.size() == answer.types.size());
    for (const auto& [name, value] : answer.types) CHECK(near(s_of(s.types, name), value));
    REQUIRE(s.stages.size() == answer.stages.size());
    for (size_t i = 0; i < answer.stages.size(); ++i) CHECK(near(s.stages[i].s, answer.stages[i]));
    for (size_t i = 0; i < answer.replicas.size(); ++i) CHECK(near(s.replicas[i].s, answer.replicas[i]));
    const StepGraph launched = graph_of(*trace, LaunchRule::kInOrder);
    for (const GraphStep& step : launched.steps) {
      int64_t sum = 0;
      for (const PathStretch& p : critical_path(launched, step)) sum += p.end_ns - p.start_ns;
      CHECK(sum == step.span_ns);
    }
  }
}
