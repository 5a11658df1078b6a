// Where alignment meets the rest: machines, simulated skew, clocks said to be one, ties by hand, steps that restart.
#include "engine/one_clock.h"

#include <doctest/doctest.h>

#include <cmath>

#include "pipeline/clocks/clock_graph.h"
#include "pipeline/clocks/tie_points.h"
#include "pipeline/replay/theory.h"
#include "pipeline/simulate/simulate.h"
#include "pipeline/sums/pipeline_sums.h"
#include "schedules/registry.h"
#include "skewed_clocks.h"
#include "unit/facts_of_trace.h"

using namespace stageline;
using namespace stageline::testing;

namespace {

SimulatedRun simulated(int32_t machines, int64_t skew_ns, int32_t dp = 1) {
  SimulateOptions options;
  options.schedule = std::move(*make_schedule("1f1b", {4, 8, 1}));
  options.machines = machines;
  options.dp = dp;
  options.steps = 5;
  options.costs.latency_ns = 200'000;
  options.jitter = 0.05;
  options.clock_skew_ns = skew_ns;
  options.seed = 3;
  SimulatedRun run = std::move(*simulate_run(options));
  run.trace.cells.sort();
  return run;
}

AlignOptions drawing(AlignMode mode = AlignMode::kAuto) {
  AlignOptions options;
  options.mode = mode;
  options.refuse_untied = true;
  return options;
}

}  // namespace

TEST_CASE("one clock: when stamps move, a copy is drawn, else the run itself") {
  SimulatedRun skewed = simulated(4, 30'000'000);
  const std::vector<int64_t> stamps = skewed.trace.cells.start_ns;
  const auto run = std::make_shared<const Run>(skewed.trace);
  CHECK(DrawnRun(run).run() == run);
  REQUIRE(map_clocks(skewed.trace, drawing()));
  const DrawnRun drawn(run);
  CHECK(drawn.run() != run);
  CHECK(drawn.trace().alignment == AlignState::kDrawn);
  CHECK(drawn.trace().cells.start_ns != stamps);
  CHECK(skewed.trace.cells.start_ns == stamps);
  CHECK(skewed.trace.alignment == AlignState::kMapped);
  Trace profile;  // whose parts all stay, whatever --ranks says
  profile.parts.resize(2);
  profile.parts[1].rank = 1;
  profile.slice_filter.ranks = {1};
  const DrawnRun chosen(std::make_shared<const Run>(profile));
  REQUIRE(chosen.trace().parts.size() == 1);
  CHECK(chosen.trace().parts[0].rank == 1);
  CHECK(profile.parts.size() == 2);
  CHECK(DrawnRun(run, DrawnStamps::kAsRecorded).run() == run);
}

TEST_CASE("one clock: simulated machines with skewed clocks are drawn as the run was") {
  const SimulatedRun straight = simulated(4, 0);
  SimulatedRun skewed = simulated(4, 30'000'000);
  REQUIRE(skewed.clock_offset_ns[1] != 0);
  REQUIRE(map_clocks(skewed.trace, drawing()));
  REQUIRE(check_one_clock(skewed.trace, drawing()));
  const TheoryRun mapped = theory_of(skewed.trace);  // while the columns are raw
  const int64_t half = skewed.trace.alignment_half_ns();
  REQUIRE(half > 0);
  skewed.trace = drawn_copy(skewed.trace);
  const int64_t zero = skewed.clock_offset_ns[0];
  int64_t worst = 0;
  REQUIRE(straight.trace.cells.size() == skewed.trace.cells.size());
  for (size_t i = 0; i < straight.trace.cells.size(); ++i)
    worst = std::max(worst, std::abs(skewed.trace.cells.start_ns[i] - zero - straight.trace.cells.start_ns[i]));
  CHECK(worst <= half + 1);
  CHECK(worst <= 100'000);  // half the latency
  // So is theory, which reads times off the map.
  const TheoryRun expected = theory_of(straight.trace);
  REQUIRE(expected.theory.known());
  REQUIRE(expected.theory.steps.size() == mapped.theory.steps.size());
  for (size_t s = 0; s < expected.theory.steps.size(); ++s) {
    const TheoryStep &a = expected.theory.steps[s], &b = mapped.theory.steps[s];
    CHECK(std::abs((a.actual_end_ns - a.actual_start_ns) - (b.actual_end_ns - b.actual_start_ns)) <= 100'000);
    CHECK(std::abs((a.actual_end_ns - a.end_ns) - (b.actual_end_ns - b.end_ns)) <= 100'000);
  }
  // The sums that compare ranks are those of the straight run.
  const PipelineSums truth = pipeline_sums(straight.trace), found = pipeline_sums(skewed.trace);
  for (size_t s = 0; s < truth.steps.size(); ++s)
    CHECK(std::abs(truth.steps[s].pipeline_span_ns() - found.steps[s].pipeline_span_ns()) <= 100'000);
}

TEST_CASE("one clock: ranks of one machine share its clock") {
  SimulatedRun run = simulated(2, 30'000'000);
  link_cells(run.trace);
  const ClockAlignment found = align_clocks(run.trace);
  CHECK(found.clocks[1].evidence == ClockEvidence::kSharedClock);
  CHECK(found.clocks[2].segments[0].offset_ns == found.clocks[3].segments[0].offset_ns);
  CHECK(std::abs(found.clocks[2].segments[0].offset_ns - (run.clock_offset_ns[1] - run.clock_offset_ns[0])) <= 100'000);
}

TEST_CASE(
    "one clock: replicas that nothing ties are drawn as recorded, refused when told to align, summed as they are") {
  SimulatedRun run = simulated(2, 10'000'000, 2);
  REQUIRE(map_clocks(run.trace, drawing()));
  CHECK(check_one_clock(run.trace, drawing()));
  CHECK(!check_one_clock(run.trace, drawing(AlignMode::kAlways)));
  AlignOptions sums = drawing();
  sums.refuse_untied = false;
  CHECK(check_one_clock(run.trace, sums));
  CHECK(run.trace.diagnostics.count("clock.untied") == 1);
  // Only the ranks of one replica: nothing to refuse.
  filter_trace(run.trace, {4, 5, 6, 7}, INT64_MIN, INT64_MAX);
  CHECK(check_one_clock(run.trace, drawing()));
}

TEST_CASE("one clock: a shared clock is checked, and moved only when asked to") {
  SimulatedRun run = simulated(1, 0);
  REQUIRE(run.trace.clock == ClockState::kShared);
  REQUIRE(map_clocks(run.trace, drawing()));
  CHECK(run.trace.alignment == AlignState::kRaw);
  CHECK(run.trace.diagnostics.count("clock.not_shared") == 0);
  for (size_t i = 0; i < run.trace.cells.size(); ++i)
    if (run.trace.cells.part[i] == 2) {
      run.trace.cells.start_ns[i] += 60'000'000;
      run.trace.cells.end_ns[i] += 60'000'000;
    }
  run.trace.cells.sort();
  REQUIRE(map_clocks(run.trace, drawing()));
  CHECK(run.trace.alignment == AlignState::kRaw);
  CHECK(run.trace.diagnostics.count("clock.not_shared") == 1);
  REQUIRE(map_clocks(run.trace, drawing(AlignMode::kAlways)));
  CHECK(run.trace.alignment == AlignState::kMapped);
  CHECK(std::abs(run.trace.parts[2].clock_map.segments[0].offset_ns - 60'000'000) < 200'000);
  Trace never = std::move(run.trace);
  never.alignment = AlignState::kRaw;
  REQUIRE(map_clocks(never, drawing(AlignMode::kNever)));
  CHECK(never.alignment == AlignState::kRaw);
}

TEST_CASE("one clock: an alignment that breaks more dependencies than it repairs is refused") {
  TraceSpec spec;
  spec.steps = 10;
  Trace trace = make_1f1b_trace(spec);
  add_messages(trace, {}, spec.stages);
  Cells& cells = trace.cells;
  // Receives of one direction end long before their messages were sent, those of the other long after.
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.kind[i] != CellKind::kRecvForward && cells.kind[i] != CellKind::kRecvBackward) continue;
    const int64_t by = cells.kind[i] == CellKind::kRecvForward ? -9'000'000 : 9'000'000;
    cells.start_ns[i] += by;
    cells.end_ns[i] += by;
  }
  cells.sort();
  trace.clock = ClockState::kUnaligned;
  REQUIRE(map_clocks(trace, drawing()));
  CHECK(trace.alignment == AlignState::kRaw);
  CHECK(trace.diagnostics.count("clock.refused") == 1);
  // The host's calls bound nothing: the same timestamps then count for nothing, and gaps align the ranks.
  trace.diagnostics = {};
  trace.messages_are_calls = true;
  REQUIRE(map_clocks(trace, drawing()));
  CHECK(trace.alignment == AlignState::kMapped);
  CHECK(trace.diagnostics.count("clock.refused") == 0);
  CHECK(clock_summary(trace).by == std::vector{ClockEvidence::kGaps});
  for (const Part& part : trace.parts) {
    const ClockSegment& s = part.clock_map.segments[0];
    CHECK(std::abs(s.offset_ns) <= s.offset_half_ns);
  }
}

TEST_CASE("one clock: replicas on one host that nothing ties share the clock that the source says") {
  SimulatedRun run = simulated(1, 0, 2);
  REQUIRE(run.trace.clock == ClockState::kShared);
  AlignOptions always;
  always.mode = AlignMode::kAlways;
  for (const AlignOptions& options : {AlignOptions{}, always}) {
    const Result<ClockAlignment> found = measure_clocks(run.trace, options);
    REQUIRE(found);
    CHECK(found->untied.empty());
    CHECK(found->clocks[4].evidence == ClockEvidence::kSharedClock);
    CHECK(found->clocks[4].segments[0].offset_ns == 0);
    CHECK(found->clocks[4].segments[0].reference_rank == 0);
    CHECK((found->clocks[5].evidence == ClockEvidence::kSharedClock) == (options.mode != AlignMode::kAlways));
  }
}

TEST_CASE("one clock: sources whose ranks restart at every step get an offset a step") {
  TraceSpec spec;
  spec.stages = 3;
  spec.steps = 4;
  Trace trace = make_1f1b_trace(spec);
  for (size_t i = 0; i < trace.cells.size(); ++i) {  // every rank's step starts at its own first cell
    const int64_t by = trace.cells.part[i] * (1'000'000 + 300'000 * trace.cells.step[i]);
    trace.cells.start_ns[i] -= by;
    trace.cells.end_ns[i] -= by;
  }
  trace.cells.sort();
  trace.clock = ClockState::kPerRank;
  trace.steps_laid_end_to_end = true;
  link_cells(trace);
  const ClockAlignment found = align_clocks(trace);
  CHECK(found.untied.empty());
  for (size_t p = 1; p < 3; ++p) {
    REQUIRE(found.clocks[p].segments.size() == 4);
    for (size_t s = 0; s < 4; ++s) {
      const auto truth = -static_cast<int64_t>(p) * (1'000'000 + 300'000 * static_cast<int64_t>(s));
      CHECK(std::abs(found.clocks[p].segments[s].offset_ns - truth) <= found.clocks[p].segments[s].offset_half_ns + 1);
      CHECK(found.clocks[p].segments[s].drift == 0);
    }
  }
}

TEST_CASE("one clock: two ranks tied by hand on an operator") {
  Trace trace;
  trace.clock = ClockState::kUnaligned;
  for (int32_t rank = 0; rank < 2; ++rank) {
    Part part;
    part.rank = rank * 3;
    Slices rows;
    for (int64_t k = 0; k < 50; ++k) {
      rows.start_ns.push_back(k * 10'000'000 + (rank ? 123'456'789 + k % 3 * 1000 : 0));
      rows.dur_ns.push_back(1'000'000);
      rows.name_id.push_back(trace.names.intern("all_reduce"));
      rows.file_index.push_back(static_cast<uint32_t>(k));
    }
    part.add_lane("stream 7", rows);
    trace.parts.push_back(std::move(part));
  }
  CHECK(align_clocks(trace).untied.size() == 1);
  AlignRequest request;
  request.by_hand = {*parse_align_on("0:3:all_reduce")};
  const ClockAlignment found = align_clocks(trace, request);
  CHECK(found.untied.empty());
  CHECK(found.clocks[1].evidence == ClockEvidence::kOperator);
  CHECK(std::abs(found.clocks[1].segments[0].offset_ns - 123'457'789) <= 1500);
  CHECK(found.clocks[1].segments[0].offset_half_ns >= 1000);
  CHECK(!parse_align_on("0:3"));
  CHECK(!parse_align_on("0:0:x"));
  CHECK(!parse_align_on("a:3:x"));
  CHECK(parse_align_on("0:3:a:b")->name == "a:b");
}

TEST_CASE("one clock: clock maps lead to the common clock and keep the order of stamps") {
  ClockMap map;
  CHECK(map.common_ns(42) == 42);
  ClockSegment first, second;
  first.offset_ns = 1000;
  first.origin_ns = 1'000'000;
  first.drift = 1e-3;
  second = first;
  second.from_ns = 2'000'000;
  second.offset_ns = 500'000;
  map.segments = {first, second};
  CHECK(map.common_ns(1'000'000) == 999'000);
  CHECK(map.common_ns(1'900'000) == 1'898'101);  // 900 µs at 1.001 are 899 101 ns of the reference
  CHECK(map.common_ns(2'000'000) < map.common_ns(2'000'001));
  CHECK(map.common_ns(INT64_MIN) == INT64_MIN);
  CHECK(map.offset_half_ns() == -1);
}

TEST_CASE("hull: admissible slopes and the highest line") {
  align::Bounds bounds;
  for (int k = 0; k <= 100; ++k) {
    const double t = k * 1e7, y = 5000 + 2e-5 * t;
    bounds.upper.add({t, y + 1000 + 40 * ((k * 37) % 11), 0});
    bounds.negated_lower.add({t, -(y - 1000 - 40 * ((k * 53) % 11)), 0});
  }
  bounds.finish();
  const align::Slopes slopes = align::admissible_slopes(bounds, 5e-4);
  REQUIRE(slopes.possible);
  CHECK(slopes.low <= 2e-5);
  CHECK(slopes.high >= 2e-5);
  CHECK(slopes.high - slopes.low < 5e-6);
  CHECK(bounds.upper.support(2e-5) == doctest::Approx(6000));
  CHECK(align::highest_at(bounds.upper, 5e8, slopes.low, slopes.high) >= 5000 + 2e-5 * 5e8);
  // Every point counts, whatever the order it came in.
  align::Hull late;
  for (const double t : {5.0, 1.0, 3.0, 2.0, 4.0}) late.add({t, std::abs(t - 3) + 1, 0});
  late.finish();
  CHECK(late.support(0) == 1);
  CHECK(late.support(2) == doctest::Approx(3 - 10));  // at t = 5
  bounds.upper.add({5e8, 5000 + 2e-5 * 5e8 - 4000, 7});
  bounds.finish();
  CHECK(!align::admissible_slopes(bounds, 5e-4).possible);
}

TEST_CASE("graph: intervals, contradictions, least squares") {
  using align::Guess;
  using align::Limit;
  const std::vector<int32_t> together = {0, 0, 0};
  std::vector<Limit> limits = {{0, 1, 5, 0}, {1, 0, -3, 0}, {1, 2, 2, 1}, {2, 1, 0, 1}};
  align::Intervals found = align::intervals(3, limits, together);
  CHECK(align::negative_cycles(3, limits).empty());
  CHECK(found.low[1] == 3);
  CHECK(found.high[1] == 5);
  CHECK(found.low[2] == 3);
  CHECK(found.high[2] == 7);
  limits.push_back({0, 2, 2, 2});  // x2 ≤ 2 against x2 ≥ 3
  const auto cycles = align::negative_cycles(3, limits);
  REQUIRE(cycles.size() == 1);
  double length = 0;
  for (const int32_t l : cycles[0]) length += limits[l].max;
  CHECK(length < 0);
  const std::vector<double> x = align::least_squares(3, {{0, 1, 10, 1}, {1, 2, 10, 1}, {0, 2, 26, 1}}, 0);
  CHECK(x[0] == 0);
  CHECK(x[1] == doctest::Approx(12));
  CHECK(x[2] == doctest::Approx(24));
  std::vector<double> moved = {0, 12, 24};
  CHECK(align::move_inside(moved, {{0, 1, 11, 0}, {1, 2, 20, 0}}));
  CHECK(moved[1] - moved[0] <= 11 + 1e-3);
  CHECK(!align::move_inside(moved, {{0, 1, -1, 0}, {1, 0, -1, 0}}));
}
