// One clock: runs whose clocks are wrong by a known amount come back right, within bounds that hold.
#include "pipeline/clocks/align.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "base/parallel.h"
#include "diagnosis/causes/findings.h"
#include "engine/model_tables.h"
#include "engine/one_clock.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "skewed_clocks.h"
#include "unit/facts_of_trace.h"

using namespace stageline;
using namespace stageline::testing;

namespace {

constexpr int64_t kStart = 1'700'000'000'000'000'000;

// Cells that leave a millisecond between what waits for what: messages fit into it.
Trace run_of(int32_t stages, int32_t dp, int32_t steps, int32_t micro_batches = 8) {
  TraceSpec spec;
  spec.stages = stages;
  spec.dp = dp;
  spec.steps = steps;
  spec.micro_batches = micro_batches;
  spec.start_ns = kStart;
  Trace trace = make_1f1b_trace(spec);
  leave_room(trace);
  return trace;
}

struct Truth {
  double offset_ns, drift;
};
// Returns the true offset of part `p` from the first part's clock, at the timestamp of the segment.
Truth truth_of(const std::vector<Clock>& clocks, size_t p, const ClockSegment& s, int64_t middle_ns) {
  const auto since = static_cast<double>(s.origin_ns - middle_ns) - clocks[p].offset_ns;
  const bool jumped = s.from_ns != INT64_MIN;
  return {clocks[p].offset_ns - clocks[0].offset_ns + (clocks[p].drift - clocks[0].drift) * since +
              (jumped ? clocks[p].jump_ns : 0),
          (clocks[p].drift - clocks[0].drift) / (1 + clocks[0].drift)};
}

void check_against(const ClockAlignment& found, const std::vector<Clock>& clocks, int64_t middle_ns, double within_ns,
                   double within_drift) {
  for (size_t p = 0; p < clocks.size(); ++p)
    for (const ClockSegment& s : found.clocks[p].segments) {
      const Truth truth = truth_of(clocks, p, s, middle_ns);
      CAPTURE(p);
      CAPTURE(truth.offset_ns);
      CHECK(std::abs(static_cast<double>(s.offset_ns) - truth.offset_ns) <= within_ns);
      CHECK(std::abs(s.drift - truth.drift) <= within_drift);
      if (p == 0 && s.from_ns == INT64_MIN) continue;
      REQUIRE(s.offset_half_ns >= 0);  // 2 ns: stamps are whole
      CHECK(std::abs(static_cast<double>(s.offset_ns) - truth.offset_ns) <= static_cast<double>(s.offset_half_ns) + 2);
      CHECK(std::abs(s.drift - truth.drift) <= s.drift_half + 1e-10);
    }
}

// Dependencies that seem to begin before what they wait for has ended.
int64_t links_early_by(const Trace& trace, int64_t tolerance_ns) {
  int64_t early = 0;
  for (const Link& link : trace.links)
    early += trace.common_ns(trace.cells.part[link.to_cell], trace.cells.start_ns[link.to_cell]) + tolerance_ns <
             trace.common_ns(trace.cells.part[link.from_cell], trace.cells.end_ns[link.from_cell]);
  return early;
}

}  // namespace

TEST_CASE("align: messages give random clocks back, and each clock lies within its bounds") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const auto stages = static_cast<int32_t>(2 + seed % 5), dp = static_cast<int32_t>(1 + seed % 3);
    Trace trace = run_of(stages, dp, 20);
    const int64_t middle = middle_of(trace);
    add_messages(trace, {20'000, 60'000 + 10'000 * static_cast<int64_t>(seed), true, true, seed}, stages);
    if (dp > 1) add_collectives(trace, "params-all-gather", seed);
    const std::vector<Clock> clocks = random_clocks(trace.parts.size(), seed, seed % 2 ? 5e7 : 3e9);
    disturb(trace, clocks, middle);
    const ClockAlignment found = align_clocks(trace);
    CHECK(found.untied.empty());
    CHECK(found.notes.count("clock.step") == 0);
    CHECK(found.notes.count("clock.bad_match") == 0);
    // Each tie says its step to microseconds, the longest way has stages + dp of them, and the run lasts 6 s.
    check_against(found, clocks, middle, 25'000, 1e-5);
  }
}

TEST_CASE("align: no message arrives before it was sent, and the answer does not depend on the number of threads") {
  Trace trace = run_of(4, 2, 12);
  const int64_t middle = middle_of(trace);
  add_messages(trace, {}, 4);
  add_collectives(trace, "grads_reduce_scatter", 3);
  disturb(trace, random_clocks(trace.parts.size(), 11), middle);
  CHECK(links_early_by(trace, 0) > 100);
  AlignOptions options;
  options.mode = AlignMode::kAuto;
  options.refuse_untied = true;
  set_thread_count(1);
  const ClockAlignment one = align_clocks(trace);
  set_thread_count(4);
  const ClockAlignment four = align_clocks(trace);
  set_thread_count(0);
  for (size_t p = 0; p < one.clocks.size(); ++p) {
    CHECK(one.clocks[p].segments[0].offset_ns == four.clocks[p].segments[0].offset_ns);
    CHECK(one.clocks[p].segments[0].drift == four.clocks[p].segments[0].drift);
    CHECK(one.clocks[p].segments[0].offset_half_ns == four.clocks[p].segments[0].offset_half_ns);
  }
  const std::vector<int64_t> raw = trace.cells.start_ns;
  REQUIRE(map_clocks(trace, options));
  CHECK(trace.cells.start_ns == raw);  // columns stay raw until something is drawn
  CHECK(check_one_clock(trace, options));
  CHECK(links_early_by(trace, 2) == 0);
  for (const Finding& finding : find_findings(trace).list) CHECK(finding.id != "clock.causality");
  trace = drawn_copy(trace);
  CHECK(trace.clock == ClockState::kAligned);
  CHECK(links_early_by(trace, 2) == 0);
  CHECK(trace.diagnostics.count("clock.aligned") == 1);
  CHECK(trace.alignment_half_ns() > 0);
}

TEST_CASE("align: without messages the smallest gaps are used, and the table names this evidence") {
  Trace trace = run_of(4, 1, 10);
  const int64_t middle = middle_of(trace);
  const std::vector<Clock> clocks = random_clocks(trace.parts.size(), 5);
  disturb(trace, clocks, middle);
  const ClockAlignment found = align_clocks(trace);
  CHECK(found.untied.empty());
  check_against(found, clocks, middle, 400'000, 1e-4);  // of 2.6 s, by gaps of a millisecond
  const Table table = clock_table(trace, found.clocks, false);
  CHECK(table.row_count() == 4);
  CHECK(table.raw_text(0, static_cast<size_t>(table.column_index("method"))) == "reference");
  CHECK(table.raw_text(3, static_cast<size_t>(table.column_index("method"))) == "compute gaps");
}

TEST_CASE("align: messages in only one direction do not connect two clocks") {
  Trace trace = run_of(3, 1, 10);
  const int64_t middle = middle_of(trace);
  trace.cells.filter([&](size_t i) { return trace.cells.kind[i] == CellKind::kForward; });
  add_messages(trace, {20'000, 60'000, true, false, 1}, 3);
  disturb(trace, random_clocks(trace.parts.size(), 5), middle);
  const ClockAlignment found = align_clocks(trace);
  CHECK(found.untied == std::vector<size_t>{1, 2});
  CHECK(found.notes.count("clock.one_way") == 2);
  CHECK(found.notes.count("clock.untied") == 1);
  AlignOptions options;
  options.mode = AlignMode::kAuto;
  options.refuse_untied = true;
  REQUIRE(map_clocks(trace, options));
  CHECK(clock_summary(trace).by.empty());
  const Table table = clock_table(trace, found.clocks, false), trusted = clock_table(trace, found.clocks, true);
  const auto text = [](const Table& t, size_t row, const char* column) {
    return t.raw_text(row, static_cast<size_t>(t.column_index(column)));
  };
  CHECK(text(table, 1, "method") == "untied");
  CHECK(text(table, 1, "offset_ns").empty());
  CHECK(text(trusted, 1, "method") == "trusted");
  CHECK(text(trusted, 1, "offset_ns") == "0");
  const Status refused = check_one_clock(trace, options);
  REQUIRE(!refused);
  CHECK(refused.error().what.find("ranks 1, 2") != std::string::npos);
  options.trust_clocks = true;
  CHECK(check_one_clock(trace, options));
  const std::vector<int64_t> raw = trace.cells.start_ns;
  trace = drawn_copy(trace);
  CHECK(trace.cells.start_ns == raw);  // trusted: as recorded
  CHECK(trace.clock == ClockState::kUnaligned);
}

TEST_CASE("align: messages without latency allow exactly one offset, and rounding does not exclude it") {
  for (const int64_t grain : {int64_t{1}, int64_t{1000}})
    for (const int64_t skew : {int64_t{0}, int64_t{25'000'000}})
      for (const char* schedule : {"1f1b", "zb-h1", "fthenb"}) {
        CAPTURE(grain);
        CAPTURE(skew);
        CAPTURE(schedule);
        SimulateOptions options;
        options.schedule = std::move(*make_schedule(schedule, {4, 8, 1}));
        options.machines = 2;
        options.steps = 5;
        options.jitter = 0.02;
        options.clock_skew_ns = skew;
        options.seed = 7;
        SimulatedRun run = std::move(*simulate_run(options));
        Cells& cells = run.trace.cells;
        cells.sort();
        // Simulated stamps are whole microseconds: stretched they are not, rounded down as a log would.
        const int64_t zero = cells.start_ns[0];
        const auto stamp = [&](int64_t ns) {
          ns = zero + (ns - zero) * 8 / 7;
          return ns - ns % grain;
        };
        for (size_t i = 0; i < cells.size(); ++i) {
          cells.start_ns[i] = stamp(cells.start_ns[i]);
          cells.end_ns[i] = stamp(cells.end_ns[i]);
        }
        link_cells(run.trace);
        const ClockAlignment found = align_clocks(run.trace);
        CHECK(found.untied.empty());
        CHECK(found.notes.count("clock.bad_match") == 0);
        CHECK(found.notes.count("clock.contradicting_tie") == 0);
        CHECK(found.notes.count("clock.step") == 0);
        const ClockSegment& s = found.clocks[3].segments[0];
        const int64_t truth = (run.clock_offset_ns[1] - run.clock_offset_ns[0]) * 8 / 7;
        CHECK(std::abs(s.offset_ns - truth) <= s.offset_half_ns + 1);  // it is whole, too
        CHECK(s.offset_half_ns <= 4 * grain);
      }
}

TEST_CASE("align: two swapped labels do not disconnect the clocks of a short run") {
  Trace trace = run_of(3, 1, 2);
  const int64_t middle = middle_of(trace);
  int32_t* first = nullptr;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.part[i] == 1 && trace.cells.kind[i] == CellKind::kForward && trace.cells.step[i] == 0 &&
        (trace.cells.micro_batch[i] == 4 || trace.cells.micro_batch[i] == 5)) {
      if (first) std::swap(*first, trace.cells.micro_batch[i]);
      first = &trace.cells.micro_batch[i];
    }
  REQUIRE(first);
  const std::vector<Clock> clocks = random_clocks(trace.parts.size(), 5, 5e7, 0);
  disturb(trace, clocks, middle);
  const ClockAlignment found = align_clocks(trace);
  CHECK(found.untied.empty());
  CHECK(found.notes.count("clock.contradicting_tie") == 0);
  CHECK(found.notes.count("clock.bad_match") >= 1);
  check_against(found, clocks, middle, 600'000, 1e-3);
}

TEST_CASE("align: likely errors match the true errors and are far smaller than the bounds") {
  int64_t ranks = 0, within = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Trace trace = run_of(4, 1, 20);
    const int64_t middle = middle_of(trace);
    add_messages(trace, {20'000, 120'000, true, true, seed}, 4);
    const std::vector<Clock> clocks = random_clocks(trace.parts.size(), seed);
    disturb(trace, clocks, middle);
    const ClockAlignment found = align_clocks(trace);
    CHECK(found.clocks[0].segments[0].offset_error_ns == 0);
    double before = 0;
    for (size_t p = 1; p < 4; ++p) {
      const ClockSegment& s = found.clocks[p].segments[0];
      const double off = std::abs(static_cast<double>(s.offset_ns) - truth_of(clocks, p, s, middle).offset_ns);
      CHECK(s.offset_error_ns > before);  // one tie more
      before = s.offset_error_ns;
      CHECK(s.offset_error_ns <= static_cast<double>(s.offset_half_ns));
      CHECK(s.offset_error_ns < 60'000);
      CHECK(s.drift_error > 0);
      CHECK(s.drift_error <= s.drift_half);
      ++ranks;
      within += off <= s.offset_error_ns;
    }
  }
  CHECK(within * 10 >= ranks * 6);  // one standard error: two of three
}

TEST_CASE("align: when a rank is missing, the clocks fall into two groups") {
  Trace trace = run_of(4, 1, 10);
  const int64_t middle = middle_of(trace);
  add_messages(trace, {}, 4);
  disturb(trace, random_clocks(trace.parts.size(), 9), middle);
  filter_trace(trace, {0, 1, 3}, INT64_MIN, INT64_MAX);
  link_cells(trace);
  const ClockAlignment found = align_clocks(trace);
  CHECK(found.untied == std::vector<size_t>{2});
  CHECK(found.clocks[2].evidence == ClockEvidence::kTrusted);
}

TEST_CASE("align: a few bad matches are named and left out") {
  Trace trace = run_of(3, 1, 30);
  const int64_t middle = middle_of(trace);
  add_messages(trace, {}, 3);
  int spoilt = 0;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.kind[i] == CellKind::kRecvForward && trace.cells.part[i] == 2 && i % 37 == 0 && spoilt < 3) {
      trace.cells.start_ns[i] -= 40'000'000;  // arrives before it was sent
      trace.cells.end_ns[i] -= 40'000'000;
      ++spoilt;
    }
  REQUIRE(spoilt > 0);
  trace.cells.sort();
  const std::vector<Clock> clocks = random_clocks(trace.parts.size(), 21);
  disturb(trace, clocks, middle);
  const ClockAlignment found = align_clocks(trace);
  CHECK(found.untied.empty());
  CHECK(found.notes.count("clock.bad_match") >= 1);
  CHECK(found.notes.count("clock.step") == 0);
  check_against(found, clocks, middle, 25'000, 1e-5);
}

TEST_CASE("align: messages that contradict each other are not used, and the cells' order ties their ranks") {
  Trace trace = run_of(2, 1, 30);
  const int64_t middle = middle_of(trace);
  add_messages(trace, {}, 2);
  for (size_t i = 0; i < trace.cells.size(); ++i)  // every fourth step's messages belong to another run
    if (is_message(trace.cells.kind[i]) && trace.cells.part[i] == 1 && trace.cells.step[i] % 4 == 0) {
      const int64_t by = trace.cells.step[i] % 8 == 0 ? 90'000'000 : -90'000'000;
      trace.cells.start_ns[i] += by;
      trace.cells.end_ns[i] += by;
    }
  trace.cells.sort();
  const std::vector<Clock> clocks = random_clocks(2, 4);
  disturb(trace, clocks, middle);
  const ClockAlignment found = align_clocks(trace);
  CHECK(found.notes.count("clock.contradicting_tie") == 1);
  CHECK(found.untied.empty());
  const ClockSegment& s = found.clocks[1].segments.front();
  CHECK(s.evidence == ClockEvidence::kGaps);
  const double off_ns = static_cast<double>(s.offset_ns) - truth_of(clocks, 1, s, middle).offset_ns;
  CHECK(std::abs(off_ns) <= static_cast<double>(s.offset_half_ns));
}

TEST_CASE("align: a clock that is set in mid-run has two segments") {
  for (const size_t jumper : {size_t{0}, size_t{1}, size_t{3}}) {
    CAPTURE(jumper);
    Trace trace = run_of(4, 1, 40);
    const int64_t middle = middle_of(trace);
    add_messages(trace, {}, 4);
    std::vector<Clock> clocks = random_clocks(trace.parts.size(), 31);
    clocks[jumper].jump_ns = jumper == 1 ? -7e6 : 9e6;
    clocks[jumper].jump_at_ns = kStart + (middle - kStart) * 4 / 3;
    disturb(trace, clocks, middle);
    const ClockAlignment found = align_clocks(trace);
    CHECK(found.notes.count("clock.step") == 1);
    CHECK(found.untied.empty());
    for (size_t p = 0; p < 4; ++p) CHECK(found.clocks[p].segments.size() == (p == jumper ? 2u : 1u));
    REQUIRE(found.clocks[jumper].segments.size() == 2);
    const ClockSegment& after = found.clocks[jumper].segments[1];
    const double at = static_cast<double>(after.from_ns - clocks[jumper].jump_at_ns) - clocks[jumper].offset_ns;
    CHECK(std::abs(at) < 2.5e7);  // within a cell or two of the moment
    if (jumper > 0) check_against(found, clocks, middle, 40'000, 3e-6);
  }
}

TEST_CASE("align: collectives that do not span the replicas are recognised") {
  for (const bool others : {false, true}) {
    Trace trace = run_of(2, 3, 20);
    const int64_t middle = middle_of(trace);
    add_messages(trace, {}, 2);
    add_collectives(trace, "layernorm-grads-all-reduce", 7, false);
    if (others) add_collectives(trace, "params-all-gather", 6);
    const std::vector<Clock> clocks = random_clocks(trace.parts.size(), 8);
    disturb(trace, clocks, middle);
    const ClockAlignment found = align_clocks(trace);
    CHECK(found.notes.count("clock.collective_not_shared") == 1);
    CHECK(found.untied.size() == (others ? 0u : 4u));
    if (others) check_against(found, clocks, middle, 30'000, 3e-6);
  }
}
