// Clocks at the edge of detection: ties of one message, ties through a third, days apart, fast drifts, timestamps at
// the ends of time. The result contains the truth within its bounds, or is not claimed.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "pipeline/clocks/align.h"
#include "skewed_clocks.h"

using namespace stageline;
using namespace stageline::testing;

namespace {

constexpr int64_t kStart = 1'700'000'000'000'000'000;
constexpr double kDay = 86'400e9;

Trace run_of(int32_t stages, int32_t dp, int32_t steps, int64_t start_ns = kStart) {
  TraceSpec spec;
  spec.stages = stages;
  spec.dp = dp;
  spec.steps = steps;
  spec.start_ns = start_ns;
  Trace trace = make_1f1b_trace(spec);
  leave_room(trace);
  return trace;
}

// Offsets (at the stamp of their report) and drifts lie within the reported bounds; offsets also within `within_ns`.
void check_held(const ClockAlignment& found, const std::vector<Clock>& clocks, int64_t middle_ns, double within_ns) {
  for (size_t p = 1; p < clocks.size(); ++p) {
    CAPTURE(p);
    REQUIRE(found.clocks[p].segments.size() == 1);
    const ClockSegment& s = found.clocks[p].segments[0];
    const double since = static_cast<double>(s.origin_ns - middle_ns) - clocks[p].offset_ns;
    const double offset = clocks[p].offset_ns - clocks[0].offset_ns + (clocks[p].drift - clocks[0].drift) * since;
    const double drift = (clocks[p].drift - clocks[0].drift) / (1 + clocks[0].drift);
    REQUIRE(s.offset_half_ns >= 0);
    CHECK(std::abs(static_cast<double>(s.offset_ns) - offset) <= static_cast<double>(s.offset_half_ns) + 2);
    CHECK(std::abs(static_cast<double>(s.offset_ns) - offset) <= within_ns);
    CHECK(std::abs(s.drift - drift) <= s.drift_half + 1e-9);
    CHECK(s.offset_error_ns <= static_cast<double>(s.offset_half_ns));
  }
}

// Leaves of the messages between two parts those for which `keep` says so; `one_way` counts all of a direction.
template <class Keep> void filter_messages(Trace& trace, Keep keep) {
  trace.cells.filter([&](size_t i) { return !is_message(trace.cells.kind[i]) || keep(i); });
}

}  // namespace

TEST_CASE("clock limits: one message in each direction connects two groups, and one message alone does not") {
  for (const bool both_ways : {true, false}) {
    CAPTURE(both_ways);
    Trace trace = run_of(4, 1, 12);
    const int64_t middle = middle_of(trace);
    add_messages(trace, {20'000, 60'000, true, true, 3}, 4);
    // Stages 1 and 2 said one thing to each other, or one did.
    filter_messages(trace, [&](size_t i) {
      const int32_t stage = trace.parts[trace.cells.part[i]].stage;
      const CellKind kind = trace.cells.kind[i];
      const bool forward = kind == CellKind::kSendForward || kind == CellKind::kRecvForward;
      const bool send = kind == CellKind::kSendForward || kind == CellKind::kSendBackward;
      const bool between = (stage == 1 && forward == send) || (stage == 2 && forward != send);
      if (!between) return true;
      return (forward || both_ways) && trace.cells.step[i] == 6 && trace.cells.micro_batch[i] == 4;
    });
    // Their cells contain no more evidence: those of stages 2 and 3 have unknown micro-batches.
    for (size_t i = 0; i < trace.cells.size(); ++i)
      if (is_compute(trace.cells.kind[i]) && trace.cells.part[i] >= 2) trace.cells.kind[i] = CellKind::kOther;
    const std::vector<Clock> clocks = random_clocks(4, 12, 5e7, 0);
    disturb(trace, clocks, middle);
    const ClockAlignment found = align_clocks(trace);
    if (both_ways) {
      CHECK(found.untied.empty());
      check_held(found, clocks, middle, 60'000);
      CHECK(found.clocks[2].segments[0].drift_half > found.clocks[1].segments[0].drift_half);
    } else {
      CHECK(found.untied == std::vector<size_t>{2, 3});
      CHECK(found.notes.count("clock.one_way") == 1);
      CHECK(found.clocks[3].segments[0].reference_rank == 2);  // of each other they are known
    }
  }
}

TEST_CASE("clock limits: two ranks that are connected only through a third") {
  Trace trace = run_of(3, 1, 12);
  const int64_t middle = middle_of(trace);
  add_messages(trace, {}, 3);
  std::vector<Clock> clocks = random_clocks(3, 2);
  disturb(trace, clocks, middle);
  const ClockAlignment found = align_clocks(trace);
  check_held(found, clocks, middle, 40'000);
  // The way leads over both ties: what is left open adds up.
  CHECK(found.clocks[2].segments[0].offset_half_ns > found.clocks[1].segments[0].offset_half_ns);
  CHECK(found.clocks[2].segments[0].offset_error_ns > found.clocks[1].segments[0].offset_error_ns);
  // Without the third nothing does.
  filter_trace(trace, {0, 2}, INT64_MIN, INT64_MAX);
  link_cells(trace);
  CHECK(align_clocks(trace).untied == std::vector<size_t>{1});
}

TEST_CASE("clock limits: drifts of 200 ppm, and clocks days behind") {
  for (const double days : {0.0, -3.0, -400.0, -19'676.0}) {  // the last: since the machine was started
    CAPTURE(days);
    Trace trace = run_of(4, 2, 20);
    const int64_t middle = middle_of(trace);
    add_messages(trace, {}, 4);
    add_collectives(trace, "params-all-gather", 4);
    std::vector<Clock> clocks;
    for (size_t p = 0; p < 8; ++p)
      clocks.push_back({p % 3 == 1 ? days * kDay : 1e6 * static_cast<double>(p), p % 2 ? 2e-4 : -2e-4, 0, INT64_MAX});
    disturb(trace, clocks, middle);
    const ClockAlignment found = align_clocks(trace);
    CHECK(found.untied.empty());
    CHECK(found.notes.count("clock.step") + found.notes.count("clock.bad_match") == 0);
    // Doubles of the test's own truth know 10^18 to 128 ns.
    check_held(found, clocks, middle, 60'000);
  }
}

TEST_CASE("clock limits: stamps near the ends of time are aligned or refused, and nothing overflows") {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLast = int64_t{1} << 61;  // 73 years from zero: beyond, timestamps are not times
  for (const int64_t start : {-kLast + 1'000'000'000, int64_t{0}, kLast - 20'000'000'000}) {
    CAPTURE(start);
    Trace trace = run_of(3, 1, 6, 0);
    add_messages(trace, {}, 3);
    for (size_t i = 0; i < trace.cells.size(); ++i) {
      trace.cells.start_ns[i] += start;
      trace.cells.end_ns[i] += start;
    }
    const int64_t middle = middle_of(trace);
    std::vector<Clock> clocks = random_clocks(3, 5, 5e7, 2e-5);
    disturb(trace, clocks, middle);
    const ClockAlignment found = align_clocks(trace);
    CHECK(found.untied.empty());
    for (size_t p = 1; p < 3; ++p) {
      REQUIRE(found.clocks[p].segments.size() == 1);
      const ClockSegment& s = found.clocks[p].segments[0];
      CHECK(std::abs(static_cast<double>(s.offset_ns) - (clocks[p].offset_ns - clocks[0].offset_ns)) < 200'000);
      const int64_t first = trace.cells.start_ns[0], common = found.clocks[p].common_ns(first);
      CHECK(std::abs(static_cast<double>(common) - static_cast<double>(first)) < 2e8);
    }
  }
  // One rank at either end: further apart than a stamp can say. Whatever is answered, no stamp leaves its range.
  Trace trace = run_of(2, 1, 6, 0);
  add_messages(trace, {}, 2);
  for (size_t i = 0; i < trace.cells.size(); ++i)
    for (int64_t* ns : {&trace.cells.start_ns[i], &trace.cells.end_ns[i]})
      *ns = trace.cells.part[i] == 0 ? *ns - kEnd + 10'000'000'000 : kEnd - 20'000'000'000 + *ns;
  trace.cells.sort();
  trace.clock = ClockState::kUnaligned;
  link_cells(trace);
  const ClockAlignment far = align_clocks(trace);
  REQUIRE(far.clocks.size() == 2);
  for (size_t i = 0; i + 1 < trace.cells.size(); ++i)
    if (trace.cells.part[i] == 1 && trace.cells.part[i + 1] == 1)
      CHECK(far.clocks[1].common_ns(trace.cells.start_ns[i]) <= far.clocks[1].common_ns(trace.cells.start_ns[i + 1]));
}

TEST_CASE("clock limits: few messages, large scatter, no symmetry: the bounds hold all the same") {
  int64_t ranks = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const auto stages = static_cast<int32_t>(2 + seed % 4), dp = static_cast<int32_t>(1 + seed % 3);
    const auto steps = static_cast<int32_t>(1 + seed % 7);
    Trace trace = run_of(stages, dp, steps);
    const int64_t middle = middle_of(trace);
    add_messages(trace, {1'000, seed % 2 ? 900'000 : 20'000, true, true, seed}, stages);
    if (dp > 1) add_collectives(trace, "all_reduce", seed);
    std::mt19937_64 random(seed);
    filter_messages(trace, [&](size_t) { return seed % 5 != 0 || random() % 8 > 0; });
    const std::vector<Clock> clocks = random_clocks(trace.parts.size(), seed, 1e9, 1e-4);
    disturb(trace, clocks, middle);
    const ClockAlignment found = align_clocks(trace);
    CHECK(found.untied.empty());
    CHECK(found.notes.count("clock.contradicting_tie") == 0);
    if (found.notes.count("clock.bad_match") > 0)
      continue;  // messages left without their other end are matched by micro-batch
    check_held(found, clocks, middle, 5e6);
    ranks += static_cast<int64_t>(trace.parts.size()) - 1;
  }
  CHECK(ranks > 200);
}
