#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"

using namespace stageline;

namespace {

SimulateOptions options(const char* name = "1f1b", int32_t stages = 4, int32_t micro_batches = 8) {
  SimulateOptions o;
  Result<Schedule> schedule = make_schedule(name, {.stages = stages, .micro_batches = micro_batches});
  REQUIRE(schedule);
  o.schedule = std::move(*schedule);
  o.steps = 2;
  return o;
}

Fault fault(const char* text) {
  Result<Fault> parsed = parse_fault(text);
  REQUIRE_MESSAGE(parsed, text);
  return *parsed;
}

Trace run(const SimulateOptions& o) {
  Result<SimulatedRun> made = simulate_run(o);
  REQUIRE(made);
  made->trace.cells.sort();
  return std::move(made->trace);
}

// Start and end of the cell of a kind, in one rank and step.
std::pair<int64_t, int64_t> times_of(const Trace& trace, int32_t step, int32_t rank, CellKind kind,
                                     int32_t micro_batch) {
  const Cells& c = trace.cells;
  for (size_t i = 0; i < c.size(); ++i)
    if (c.step[i] == step && c.part[i] == rank && c.kind[i] == kind && c.micro_batch[i] == micro_batch)
      return {c.start_ns[i], c.end_ns[i]};
  FAIL("no such cell");
  return {};
}

std::vector<Cell> compute_of(const Trace& trace) {
  std::vector<Cell> cells;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (is_compute(trace.cells.kind[i])) cells.push_back(trace.cells.at(i));
  return cells;
}

bool same_times(const Trace& a, const Trace& b) {
  const std::vector<Cell> x = compute_of(a), y = compute_of(b);
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](const Cell& s, const Cell& t) {
           return s.kind == t.kind && s.micro_batch == t.micro_batch && s.start_ns == t.start_ns &&
                  s.end_ns == t.end_ns;
         });
}

}  // namespace

TEST_CASE("faults: what is read, and what is refused with its form") {
  CHECK(fault("slow-link:1,2,+3ms").time_ns == 3'000'000);
  CHECK(fault("slow-link:1,2,4,3").factor == 4);
  CHECK(fault("slow-link:1,2,4,3").dp == 3);
  CHECK(fault("gc:40ms,0.01").share == doctest::Approx(0.01));
  CHECK(fault("missing-dw").target == -1);
  CHECK(fault("missing_dw:2").target == 2);
  CHECK(fault("wrong-order:2,5").index == 5);
  for (const char* text :
       {"", ":", "slow-link", "slow-link:1,2", "slow-link:1,2,+", "slow-link:1,2,+3ms,x", "gc:40ms", "gc:40ms,2",
        "long-sequences:-1,2", "slow-step:1,0", "late-launch:1,-2ms", "wrong-order:-1",
        "missing-dw:", "heavy-head:", "heavy-head:nan", "slow-stage:1,2,3", "late-launch:1,9999999999999s"}) {
    CAPTURE(text);
    const Result<Fault> parsed = parse_fault(text);
    REQUIRE(!parsed);
    CHECK(parsed.error().code == ErrorCode::kUsage);
    CHECK(parsed.error().hint.find("write ") == 0);
  }
  for (const char* text :
       {"slow-stage:4,2", "slow-link:0,9,+1ms", "slow-link:1,1,+1ms", "slow-link:0,1,3", "slow-step:2,2",
        "late-launch:4,1ms", "slow-link:0,1,+1ms,1", "missing-dw", "wrong-order:0,99"}) {
    CAPTURE(text);
    SimulateOptions o = options();
    o.faults = {fault(text)};
    CHECK(!simulate_run(o));
  }
}

TEST_CASE("messages: where a cell's result is, and no compute cell moves") {
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(def->name);
    SimulateOptions o;
    Result<Schedule> schedule =
        make_schedule(def->name, {.stages = 4, .micro_batches = 8, .chunks = def->default_chunks});
    REQUIRE(schedule);
    o.schedule = std::move(*schedule);
    o.dp = 2;
    o.costs.latency_ns = 300'000;
    const Trace plain = run(o);
    o.messages = true;
    const Trace trace = run(o);
    CHECK(same_times(plain, trace));
    // Every send has a receive of the same micro-batch and end, and none is posted after its message began.
    std::map<std::tuple<int32_t, CellKind, int32_t, int64_t>, int64_t> balance;
    int64_t sends = 0;
    for (size_t i = 0; i < trace.cells.size(); ++i) {
      const Cell c = trace.cells.at(i);
      if (!is_message(c.kind)) continue;
      const bool send = c.kind == CellKind::kSendForward || c.kind == CellKind::kSendBackward;
      const bool forward = c.kind == CellKind::kSendForward || c.kind == CellKind::kRecvForward;
      balance[{c.step, forward ? CellKind::kForward : CellKind::kBackward, c.micro_batch, c.end_ns}] += send ? 1 : -1;
      sends += send ? 1 : 0;
      if (send) CHECK(c.end_ns - c.start_ns == 300'000);
      else CHECK(c.end_ns - c.start_ns >= 300'000);
    }
    CHECK(sends > 0);
    CHECK(std::all_of(balance.begin(), balance.end(), [](const auto& entry) { return entry.second == 0; }));
  }
}

TEST_CASE("messages: one at a time on a link, and each takes its time on it") {
  SimulateOptions o = options("fthenb", 2, 3);
  o.messages = true;
  o.costs.latency_ns = 25'000'000;  // longer than the cells of 10 ms that make them
  const Trace trace = run(o);
  const auto first = times_of(trace, 0, 0, CellKind::kSendForward, 0);
  const auto second = times_of(trace, 0, 0, CellKind::kSendForward, 1);
  CHECK(first.second - first.first == 25'000'000);
  CHECK(second.first == first.second);
  CHECK(times_of(trace, 0, 1, CellKind::kForward, 1).first == second.second);
}

TEST_CASE("slow-link: its messages alone take longer, with and without recorded messages") {
  for (const bool messages : {false, true}) {
    SimulateOptions o = options();
    o.dp = 2;
    o.costs.latency_ns = 200'000;
    o.messages = messages;
    o.faults = {fault("slow-link:1,2,+3ms,1")};
    const Trace trace = run(o);
    const auto gap = [&](int32_t dp, int32_t from, int32_t to, CellKind kind) {
      return times_of(trace, 0, dp * 4 + to, kind, 0).first - times_of(trace, 0, dp * 4 + from, kind, 0).second;
    };
    CHECK(gap(0, 1, 2, CellKind::kForward) == 200'000);
    CHECK(gap(1, 1, 2, CellKind::kForward) == 3'200'000);
    CHECK(gap(1, 2, 3, CellKind::kForward) == 200'000);
    CHECK(gap(1, 2, 1, CellKind::kBackward) == 200'000);
  }
}

TEST_CASE("faults of durations: whom they lengthen, and by how much") {
  SimulateOptions o = options();
  o.dp = 2;
  o.optimizer_ns = 5'000'000;
  const auto duration = [](const Trace& t, int32_t step, int32_t rank, CellKind kind, int32_t mb) {
    const auto [start, end] = times_of(t, step, rank, kind, mb);
    return end - start;
  };
  o.faults = {fault("heavy-head:0.8")};
  const Trace head = run(o);
  CHECK(duration(head, 0, 3, CellKind::kForward, 2) == 18'000'000);
  CHECK(duration(head, 0, 7, CellKind::kBackward, 2) == 36'000'000);
  CHECK(duration(head, 0, 2, CellKind::kForward, 2) == 10'000'000);
  o.faults = {fault("slow-step:1,2")};
  const Trace slow = run(o);
  CHECK(duration(slow, 0, 1, CellKind::kForward, 0) == 10'000'000);
  CHECK(duration(slow, 1, 1, CellKind::kForward, 0) == 20'000'000);
  CHECK(duration(slow, 1, 1, CellKind::kOptimizer, kUnknown) == 10'000'000);

  o.faults = {fault("long-sequences:0.5,3")};
  const Trace sequences = run(o);
  int64_t longer = 0;
  for (int32_t dp = 0; dp < 2; ++dp)
    for (int32_t mb = 0; mb < 8; ++mb) {
      const int64_t forward = duration(sequences, 0, dp * 4, CellKind::kForward, mb);
      longer += forward == 30'000'000 ? 1 : 0;
      CHECK((forward == 10'000'000 || forward == 30'000'000));
      for (int32_t stage = 0; stage < 4; ++stage) {
        CHECK(duration(sequences, 0, dp * 4 + stage, CellKind::kForward, mb) == forward);
        CHECK(duration(sequences, 0, dp * 4 + stage, CellKind::kBackward, mb) == 2 * forward);
      }
    }
  CHECK(longer > 0);
  CHECK(longer < 16);
}

TEST_CASE("delays: a late launch delays every cell of a rank, a collector some of all") {
  SimulateOptions o = options();
  o.faults = {fault("late-launch:0,2ms")};
  const Trace late = run(o);
  CHECK(times_of(late, 0, 0, CellKind::kForward, 0).first == o.start_ns + 2'000'000);
  CHECK(times_of(late, 0, 0, CellKind::kForward, 1).first == o.start_ns + 2 * 2'000'000 + 10'000'000);
  CHECK(times_of(late, 0, 1, CellKind::kForward, 0).first == times_of(late, 0, 0, CellKind::kForward, 0).second);

  o = options("1f1b", 4, 32);
  o.steps = 8;
  o.faults = {fault("gc:30ms,0.1")};
  const Trace trace = run(o);
  std::map<int32_t, int64_t> pauses;  // by rank: cells that begin 30 ms after the one before, with nothing to wait for
  for (size_t i = 1; i < trace.cells.size(); ++i)
    if (trace.cells.part[i] == trace.cells.part[i - 1] && trace.cells.step[i] == trace.cells.step[i - 1] &&
        trace.cells.part[i] == 0 && trace.cells.kind[i] == CellKind::kForward &&
        trace.cells.start_ns[i] - trace.cells.end_ns[i - 1] == 30'000'000)
      ++pauses[trace.cells.part[i]];
  CHECK(pauses[0] > 5);  // 256 forwards of stage 0, which wait for no other: 25.6 on average
  CHECK(pauses[0] < 60);
}

TEST_CASE("faults of the order: swapped neighbours, and weight gradients that were not split off") {
  SimulateOptions o = options("zb-h1");
  o.faults = {fault("wrong-order:2")};
  Result<SimulatedRun> swapped = simulate_run(o);
  REQUIRE(swapped);
  const RankOrder &was = o.schedule.ranks[2], &is = swapped->schedule.ranks[2];
  REQUIRE(was.size() == is.size());
  std::vector<size_t> differ;
  for (size_t i = 0; i < was.size(); ++i)
    if (!(was[i] == is[i])) differ.push_back(i);
  REQUIRE(differ.size() == 2);
  CHECK(differ[1] == differ[0] + 1);
  CHECK(was[differ[0]] == is[differ[1]]);
  CHECK(o.schedule.ranks[1] == swapped->schedule.ranks[1]);

  o.faults = {fault("missing-dw:1")};
  Result<SimulatedRun> merged = simulate_run(o);
  REQUIRE(merged);
  const auto count = [&](int32_t stage, CellKind kind) {
    return std::count_if(merged->schedule.ranks[stage].begin(), merged->schedule.ranks[stage].end(),
                         [&](const ScheduleCell& cell) { return cell.actions()[0].kind == kind; });
  };
  CHECK(count(1, CellKind::kWeightGrad) == 0);
  CHECK(count(1, CellKind::kBackward) == 8);
  CHECK(count(2, CellKind::kWeightGrad) == 8);
}

TEST_CASE("reduce: every rank waits for the slowest replica of its stage") {
  SimulateOptions o = options();
  o.dp = 2;
  o.reduce_ns = 4'000'000;
  o.collectives = true;
  o.optimizer_ns = 1'000'000;
  o.faults = {fault("slow-rank:6,2")};
  const Trace trace = run(o);
  std::map<int32_t, std::pair<int64_t, int64_t>> reduce;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.kind[i] == CellKind::kCollective && trace.cells.step[i] == 0)
      reduce[trace.cells.part[i]] = {trace.cells.start_ns[i], trace.cells.end_ns[i]};
  REQUIRE(reduce.size() == 8);
  for (int32_t stage = 0; stage < 4; ++stage) {
    CHECK(reduce[stage].second == reduce[stage + 4].second);
    CHECK(reduce[stage].first < reduce[stage + 4].first);
    CHECK(reduce[stage + 4].second - reduce[stage + 4].first == 4'000'000);
  }
}
