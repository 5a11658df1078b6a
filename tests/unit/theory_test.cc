#include "pipeline/replay/theory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "diagnosis/causes/findings.h"
#include "pipeline/measure/late_cells.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "unit/facts_of_trace.h"
#include "unit/make_trace.h"

using namespace stageline;

namespace {

Trace simulated(const char* name, SimulateOptions o, ScheduleSizes sizes = {}) {
  for (const ScheduleDef* def : schedules())
    if (def->name == std::string_view(name) && sizes.chunks < def->default_chunks) sizes.chunks = def->default_chunks;
  Result<Schedule> schedule = make_schedule(name, sizes);
  REQUIRE(schedule);
  o.schedule = std::move(*schedule);
  Result<SimulatedRun> run = simulate_run(o);
  REQUIRE(run);
  run->trace.cells.sort();
  return std::move(run->trace);
}

// Cells that theory has elsewhere than they were.
int64_t displaced(const Trace& trace, const Theory& theory) {
  int64_t count = 0;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (is_compute(trace.cells.kind[i]))
      count +=
          theory.has(i) && theory.start_ns[i] == trace.cells.start_ns[i] && theory.end_ns[i] == trace.cells.end_ns[i]
              ? 0
              : 1;
  return count;
}

void move_cells(Trace& trace, size_t from, int64_t by_ns) {  // that cell and all later ones of its step
  const int64_t at = trace.cells.start_ns[from];
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.step[i] == trace.cells.step[from] && trace.cells.start_ns[i] >= at) {
      trace.cells.start_ns[i] += by_ns;
      trace.cells.end_ns[i] += by_ns;
    }
}

}  // namespace

TEST_CASE("theory: a run that follows its schedule without jitter or latency is its own theory") {
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(def->name);
    SimulateOptions o;
    o.dp = 2;
    o.faults = {{"slow-stage", 2, 1.4}};
    const Trace trace = simulated(def->name, o, {.stages = 4, .micro_batches = 8});
    const TheoryRun run = theory_of(trace);
    REQUIRE(run.theory.known());
    CHECK(displaced(trace, run.theory) == 0);
    CHECK(run.theory.steps.size() == 6);
    const LateCells late = late_cells(trace, run, 1);
    CHECK(late.found == 0);
    CHECK(late.chain.actual_ns == late.chain.theory_ns);
  }
}

TEST_CASE("theory: orders whose steady forwards and backwards ran as one are replayed so") {
  // Megatron's EP overlap lists F before B, Paddle's 1F1B overlap B before F; neither has cells of two in its order.
  for (const auto& [name, chunks, first] :
       {std::tuple("vpp-ep-overlap", 2, CellKind::kForward), std::tuple("1f1b", 1, CellKind::kBackward)})
    for (const auto& [p, m] : {std::pair(4, 8), std::pair(2, 6), std::pair(4, 16)}) {
      CAPTURE(std::string(name));
      CAPTURE(p);
      CAPTURE(m);
      SimulateOptions o;
      o.schedule = std::move(*make_schedule(name, {.stages = p, .micro_batches = m, .chunks = chunks}));
      int64_t pairs = 0;
      for (RankOrder& order : o.schedule.ranks) {
        size_t steady = 0;
        while (order[steady].actions()[0].kind == CellKind::kForward) ++steady;
        if (first == CellKind::kForward) --steady;
        RankOrder fused(order.begin(), order.begin() + static_cast<ptrdiff_t>(steady));
        for (size_t i = steady; i < order.size(); ++i) {
          const Action now = order[i].actions()[0];
          const Action next = i + 1 < order.size() ? order[i + 1].actions()[0] : now;
          if (now.kind == first && next.kind != first) {
            fused.push_back(first == CellKind::kForward ? ScheduleCell(now, next) : ScheduleCell(next, now));
            ++pairs;
            ++i;
          } else {
            fused.push_back(order[i]);
          }
        }
        order = std::move(fused);
      }
      CHECK(pairs > m);
      o.costs.overlapped_ns = o.costs.forward_ns + o.costs.backward_ns * 3 / 5;
      o.steps = 3;
      Result<SimulatedRun> run = simulate_run(o);
      REQUIRE(run);
      run->trace.cells.sort();
      const TheoryRun theory = theory_of(run->trace);
      const Recognition& r = theory.recognition;
      CHECK((r.best().name == name || std::find(r.same_as.begin(), r.same_as.end(), name) != r.same_as.end()));
      CHECK((r.best().name == name || p == 2));  // two stages of 1F1B in pairs are those of Eager 1F1B
      CHECK(r.best().equal_lists == r.lists);
      REQUIRE_MESSAGE(theory.theory.known(), theory.theory.why_not.en);
      CHECK(displaced(run->trace, theory.theory) == 0);
      CHECK(late_cells(run->trace, theory, 1).found == 0);
    }
}

TEST_CASE("theory: the parts of the loss add up to the span") {
  SimulateOptions o;
  o.jitter = 0.1;
  o.costs.latency_ns = 2'000'000;
  o.dp = 3;
  for (const char* name : {"1f1b", "vpp", "zb-v", "dualpipe-v", "dualpipe"}) {
    CAPTURE(name);
    const Trace trace = simulated(name, o, {.stages = 4, .micro_batches = 12});
    const LateChain c = late_cells(trace, theory_of(trace), 1).chain;
    CHECK(c.steps == 9);
    CHECK(c.theory_ns + c.longer_ns + c.message_ns + c.launch_ns + c.blocked_ns + c.unexplained_ns - c.slack_ns ==
          doctest::Approx(c.actual_ns));
    CHECK(c.unexplained_ns > 0);  // latency of messages that were not recorded
    CHECK(c.message_ns == 0);
  }
}

// Stretches one step from its first start.
void stretch_step(Trace& trace, int32_t step, double by) {
  Cells& cells = trace.cells;
  int64_t zero = INT64_MAX;
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells.step[i] == step) zero = std::min(zero, cells.start_ns[i]);
  const auto moved = [&](int64_t t) { return zero + std::llround(static_cast<double>(t - zero) * by); };
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.step[i] != step) continue;
    cells.start_ns[i] = moved(cells.start_ns[i]);
    cells.end_ns[i] = moved(cells.end_ns[i]);
  }
}

TEST_CASE("theory: a step at another pace is compared with its own, and scatter is no pace") {
  SimulateOptions o;
  o.steps = 3;
  Trace trace = simulated("1f1b", o);
  stretch_step(trace, 1, 1.2);
  const TheoryRun run = theory_of(trace);
  REQUIRE(run.theory.steps.size() == 3);
  CHECK(run.theory.outliers.empty());
  for (size_t s = 0; s < 3; ++s) {
    const TheoryStep& step = run.theory.steps[s];
    CHECK(step.own_pace);  // the mean is none of the three's
    CHECK(std::abs((step.end_ns - step.start_ns) - (step.actual_end_ns - step.actual_start_ns)) < 100);
    CHECK(run.own_numbers.at(s).span_ns == step.end_ns - step.start_ns);
  }
  CHECK(late_cells(trace, run, 1000).found == 0);

  o.jitter = 0.1;
  Trace noisy = simulated("1f1b", o);
  const uint32_t hiccup = stageline::testing::find_cell(noisy, 1, 2, CellKind::kForward, 3);
  noisy.cells.end_ns[hiccup] += 5'000'000;
  for (const TheoryStep& step : theory_of(noisy).theory.steps) CHECK_FALSE(step.own_pace);
}

TEST_CASE("theory: outlier steps do not count in the loss") {
  SimulateOptions o;
  o.steps = 5;
  Trace trace = simulated("1f1b", o);
  const LateChain before = late_cells(trace, theory_of(trace), 1).chain;
  stretch_step(trace, 4, 1.5);
  const TheoryRun run = theory_of(trace);
  CHECK(run.theory.outliers == std::vector<int32_t>{4});
  const LateChain after = late_cells(trace, run, 1).chain;
  CHECK(before.steps == 5);
  CHECK(after.steps == 4);
  CHECK(after.actual_ns / 4 == doctest::Approx(before.actual_ns / 5));
}

TEST_CASE("theory: a step that is long or late moves no other") {
  SimulateOptions o;
  o.steps = 5;
  Trace trace = simulated("1f1b", o);
  Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.step[i] == 2) {  // three times as long from its start
      const int64_t zero = cells.start_ns[step_ranges(cells)[2].begin];
      cells.start_ns[i] = zero + 3 * (cells.start_ns[i] - zero);
      cells.end_ns[i] = zero + 3 * (cells.end_ns[i] - zero);
    }
    if (cells.step[i] == 4) cells.start_ns[i] += 77'000'000, cells.end_ns[i] += 77'000'000;
  }
  const TheoryRun run = theory_of(trace);
  REQUIRE(run.theory.known());
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.step[i] == 2) continue;
    CHECK(run.theory.start_ns[i] == cells.start_ns[i]);  // the outlier does not affect the others
    CHECK(run.theory.end_ns[i] == cells.end_ns[i]);
  }
  const TheoryStep& outlier = run.theory.steps[2];
  CHECK(outlier.start_ns == outlier.actual_start_ns);
  CHECK(outlier.own_pace);  // all of it is slow: its order is not
  CHECK(outlier.actual_end_ns - outlier.actual_start_ns == outlier.end_ns - outlier.start_ns);
}

TEST_CASE("late cells: producer, rank, and a gap that nothing explains") {
  SimulateOptions o;
  o.steps = 6;
  Trace trace = simulated("1f1b", o);
  const uint32_t f3 = stageline::testing::find_cell(trace, 5, 2, CellKind::kForward, 3);
  move_cells(trace, f3, 5'000'000);
  const TheoryRun run = theory_of(trace);
  const LateCells late = late_cells(trace, run, 4'000'000);
  REQUIRE(late.found > 3);
  const auto of = [&](int32_t part, CellKind kind, int32_t mb) {
    const uint32_t wanted = stageline::testing::find_cell(trace, 5, part, kind, mb);
    for (const LateCell& l : late.cells)
      if (l.cell == wanted) return l;
    return LateCell{};
  };
  const LateCell gap = of(2, CellKind::kForward, 3);
  CHECK(gap.reason == LateReason::kUnexplained);
  CHECK(gap.late_ns == 5'000'000);
  CHECK(gap.gap_ns == 5'000'000);
  const LateCell next = of(3, CellKind::kForward, 3);
  CHECK(next.reason == LateReason::kProducer);
  CHECK(next.waited_for == f3);
  const LateCell after = of(3, CellKind::kBackward, 3);
  CHECK(after.reason == LateReason::kRank);
  CHECK(trace.cells.micro_batch[after.waited_for] == 3);
  for (const LateCell& l : late.cells) CHECK(trace.cells.step[l.cell] == 5);
}

TEST_CASE("late cells: a kernel that its host launched late, and what is left of the gap") {
  for (const int64_t before_ns : {int64_t{1'000'000}, int64_t{4'500'000}, int64_t{9'000'000}}) {
    CAPTURE(before_ns);
    SimulateOptions o;
    o.steps = 6;
    Trace trace = simulated("1f1b", o);
    const uint32_t f3 = stageline::testing::find_cell(trace, 5, 2, CellKind::kForward, 3);
    move_cells(trace, f3, 5'000'000);
    // The host's call, and the kernel with which the cell begins.
    Part& part = trace.parts[2];
    const int64_t start_ns = trace.cells.start_ns[f3];
    part.slices = {};
    part.slices.start_ns = {start_ns - before_ns, start_ns};
    part.slices.dur_ns = {10'000, 8'000'000};
    part.slices.name_id = {0, 0};
    part.slices.partner = {1, 0};
    part.slices.category_id = {0, 0};
    part.slices.kernel_class = {0, static_cast<uint8_t>(KernelClass::kComputation)};
    part.lanes.resize(2);
    part.lanes[0] = {"host", 0, 1, LaneKind::kHostThread};
    part.lanes[1] = {"stream 7", 1, 2, LaneKind::kDeviceStream};
    const LateCells late = late_cells(trace, theory_of(trace), 4'000'000);
    const auto found =
        std::find_if(late.cells.begin(), late.cells.end(), [&](const LateCell& l) { return l.cell == f3; });
    REQUIRE(found != late.cells.end());
    CHECK(found->gap_ns == 5'000'000);
    // Launched so long after it could have run; before that, the device had it and waited for something else.
    CHECK(found->launch_ns == std::max<int64_t>(0, 5'000'000 - before_ns));
    CHECK(found->reason == (before_ns < 2'500'000 ? LateReason::kLaunch : LateReason::kUnexplained));
    CHECK(late.by_stage[2][LateReason::kLaunch].count == (before_ns < 2'500'000 ? 1 : 0));
    CHECK(late.chain.launch_ns == static_cast<double>(found->launch_ns));
  }
}

TEST_CASE("late cells: a recorded receive or send makes it a message") {
  for (const bool receive : {true, false}) {
    SimulateOptions o;
    o.steps = 2;
    Trace trace = simulated("1f1b", o);
    const uint32_t f0 = stageline::testing::find_cell(trace, 1, 1, CellKind::kForward, 0);
    const uint32_t from = stageline::testing::find_cell(trace, 1, 0, CellKind::kForward, 0);
    const int64_t sent = trace.cells.end_ns[from];
    Cell message{1,
                 receive ? 1 : 0,
                 receive ? CellKind::kRecvForward : CellKind::kSendForward,
                 0,
                 0,
                 sent,
                 sent + 3'000'000,
                 kNoSlice};
    // Everything moves except the producer and the cells that run in parallel.
    const int64_t at = trace.cells.start_ns[f0];
    for (size_t i = 0; i < trace.cells.size(); ++i)
      if (trace.cells.step[i] == 1 && trace.cells.start_ns[i] >= at) {
        trace.cells.start_ns[i] += 3'000'000;
        trace.cells.end_ns[i] += 3'000'000;
      }
    trace.cells.add(message);
    trace.cells.sort();
    const LateCells late = late_cells(trace, theory_of(trace), 1'000'000);
    bool found = false;
    for (const LateCell& l : late.cells) {
      if (l.cell != stageline::testing::find_cell(trace, 1, 1, CellKind::kForward, 0)) continue;
      found = true;
      CHECK(l.reason == LateReason::kMessage);
      CHECK(l.message_ns == 3'000'000);
    }
    CHECK(found);
    CHECK(late.chain.message_ns == 3'000'000);
  }
}

TEST_CASE("theory: when nothing is recognised, or cannot be measured, a note tells so and nothing is guessed") {
  CHECK_FALSE(theory_of(Trace{}).theory.known());
  SimulateOptions o;
  Trace pieces = simulated("1f1b", o);
  pieces.chunks_are_pieces = true;
  CHECK_FALSE(theory_of(pieces).theory.why_not.empty());
  Trace cut = simulated("1f1b", o);
  cut.cells.filter([&](size_t i) { return cut.cells.part[i] != 2; });
  const TheoryRun run = theory_of(cut);
  CHECK_FALSE(run.theory.known());
  CHECK(run.theory.why_not.en.find("stage 2 has no") != std::string::npos);
  CHECK(late_cells(cut, run, 1).cells.empty());
}

TEST_CASE("theory: ranks without a common clock are anchored one by one") {
  SimulateOptions o;
  Trace trace = simulated("1f1b", o);
  trace.clock = ClockState::kPerRank;
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    trace.cells.start_ns[i] += trace.cells.part[i] * int64_t{1'000'000'000'000};
    trace.cells.end_ns[i] += trace.cells.part[i] * int64_t{1'000'000'000'000};
  }
  const TheoryRun run = theory_of(trace);
  REQUIRE(run.theory.known());
  CHECK(run.theory.by_rank);
  CHECK(displaced(trace, run.theory) == 0);
  CHECK(late_cells(trace, run, 1).found == 0);
}

TEST_CASE("phases: of ranks and of the pipeline") {
  const Trace trace = stageline::testing::make_1f1b_trace({.stages = 4, .micro_batches = 8});
  const std::vector<RankPhases> ranks = rank_phases(trace);
  REQUIRE(ranks.size() == 4);
  // The last stage alternates from its first cell to its last.
  CHECK(ranks[3].steady_ns - ranks[3].start_ns == 8'050'000);
  CHECK(ranks[3].end_ns - ranks[3].cool_down_ns == 16'200'000);
  const std::vector<PipelinePhases> all = pipeline_phases(trace, ranks);
  REQUIRE(all.size() == 1);
  CHECK(all[0].start_ns == ranks[0].start_ns);
  CHECK(all[0].steady_ns == ranks[3].steady_ns);
  CHECK(all[0].cool_down_ns == ranks[3].cool_down_ns);
  CHECK(all[0].end_ns == ranks[0].end_ns);
}

TEST_CASE("finding schedule.late: latency is named where it costs a twentieth, and not below") {
  for (const int64_t latency_ns : {int64_t{4'000'000}, int64_t{100'000}}) {
    SimulateOptions o;
    o.costs.latency_ns = latency_ns;
    const Trace trace = simulated("1f1b", o);
    std::vector<Finding> findings;
    add_late(trace, theory_of(trace), 1, findings);
    CHECK(std::count_if(findings.begin(), findings.end(), [](const Finding& f) { return f.id == "schedule.late"; }) ==
          (latency_ns > 1'000'000 ? 1 : 0));
  }
}

TEST_CASE("theory: stamps at the ends of time do no harm") {
  SimulateOptions o;
  for (const int64_t shift : {INT64_MAX - int64_t{2'000'000'000'000'000'000}, int64_t{-9'000'000'000'000'000'000}}) {
    Trace trace = simulated("1f1b", o);
    for (size_t i = 0; i < trace.cells.size(); i += 3) trace.cells.start_ns[i] = trace.cells.end_ns[i] = shift;
    trace.cells.sort();
    (void)late_cells(trace, theory_of(trace), 1);
  }
}
