// Clocks and matches that are wrong in unkind ways: clocks that are set twice, drift wildly, or are hours apart; ties
// that contradict each other around a cycle. There are also messages of chunks in a V, and collectives of profiles.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "diagnosis/causes/findings.h"
#include "engine/one_clock.h"
#include "pipeline/clocks/align.h"
#include "pipeline/clocks/clock_graph.h"
#include "pipeline/replay/theory.h"
#include "pipeline/simulate/simulate.h"
#include "readers/common/ops.h"
#include "schedules/registry.h"
#include "skewed_clocks.h"
#include "torch_traces.h"
#include "unit/facts_of_trace.h"

using namespace stageline;
using namespace stageline::testing;

namespace {

constexpr int64_t kStart = 1'700'000'000'000'000'000;

Trace run_of(int32_t stages, int32_t dp, int32_t steps) {
  TraceSpec spec;
  spec.stages = stages;
  spec.dp = dp;
  spec.steps = steps;
  spec.start_ns = kStart;
  Trace trace = make_1f1b_trace(spec);
  trace.clock = ClockState::kUnaligned;
  leave_room(trace);
  return trace;
}

std::string note_of(const ClockAlignment& found, std::string_view name) {
  for (const Diagnostic& d : found.notes.items())
    if (d.name == name) return d.message.en;
  return "";
}

// Every stamp of `trace` comes back to where it was in `truth`, up to what part 0's clock is off.
double worst_error(const Trace& trace, const Cells& truth, const ClockAlignment& found) {
  double worst = 0;
  int64_t zero = 0;
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const auto p = static_cast<size_t>(trace.cells.part[i]);
    const int64_t off = found.clocks[p].common_ns(trace.cells.start_ns[i]) - truth.start_ns[i];
    if (i == 0) zero = off;
    worst = std::max(worst, std::abs(static_cast<double>(off - zero)));
  }
  return worst;
}

// Adds messages between the virtual stages of every chunk, in the given layout.
void add_chunk_messages(Trace& trace, const Schedule& schedule) {
  const Cells cells = trace.cells;
  const int32_t last = virtual_stage_count(schedule) - 1;
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool forward = cells.kind[i] == CellKind::kForward;
    if (!forward && cells.kind[i] != CellKind::kBackward && cells.kind[i] != CellKind::kInputGrad) continue;
    const int32_t from = virtual_stage(schedule, trace.parts[cells.part[i]].stage, cells.chunk[i]);
    const int32_t to = from + (forward ? 1 : -1);
    if (to < 0 || to > last) continue;
    for (int32_t stage = 0; stage < schedule.sizes.stages; ++stage)
      for (int32_t chunk = 0; chunk < schedule.sizes.chunks; ++chunk) {
        if (virtual_stage(schedule, stage, chunk) != to || stage == cells.part[i]) continue;
        const int64_t end = cells.end_ns[i];
        trace.cells.add({cells.step[i], cells.part[i], forward ? CellKind::kSendForward : CellKind::kSendBackward,
                         cells.chunk[i], cells.micro_batch[i], end, end + 20'000, kNoSlice});
        trace.cells.add({cells.step[i], stage, forward ? CellKind::kRecvForward : CellKind::kRecvBackward, chunk,
                         cells.micro_batch[i], end - 300'000, end + 30'000, kNoSlice});
      }
  }
  trace.cells.sort();
}

}  // namespace

TEST_CASE("clock faults: a clock that is set twice, in opposite directions or in the same one, has three segments") {
  for (const double second : {-9e6, 7e6}) {
    CAPTURE(second);
    Trace trace = run_of(4, 1, 60);
    const int64_t middle = middle_of(trace), third = (middle - kStart) * 2 / 3;
    add_messages(trace, {}, 4);
    const Cells truth = trace.cells;
    std::vector<Clock> clocks = random_clocks(4, 4);
    disturb(trace, clocks, middle);
    for (size_t i = 0; i < trace.cells.size(); ++i) {
      if (trace.cells.part[i] != 2) continue;
      for (int64_t* ns : {&trace.cells.start_ns[i], &trace.cells.end_ns[i]}) {
        const int64_t true_ns = ns == &trace.cells.start_ns[i] ? truth.start_ns[i] : truth.end_ns[i];
        if (true_ns >= kStart + third) *ns += 7'000'000;
        if (true_ns >= kStart + 2 * third) *ns += static_cast<int64_t>(second);
      }
    }
    const ClockAlignment found = align_clocks(trace);
    CHECK(found.notes.count("clock.step") == 2);
    CHECK(found.untied.empty());
    for (size_t p = 0; p < 4; ++p) REQUIRE(found.clocks[p].segments.size() == (p == 2 ? 3u : 1u));
    const auto& s = found.clocks[2].segments;
    CHECK(std::abs(static_cast<double>(s[1].offset_ns - s[0].offset_ns) - 7e6) < 50'000);
    CHECK(std::abs(static_cast<double>(s[2].offset_ns - s[1].offset_ns) - second) < 50'000);
  }
}

TEST_CASE("clock faults: drifts far beyond those of quartz are followed and reported") {
  Trace trace = run_of(3, 1, 40);
  const int64_t middle = middle_of(trace);
  add_messages(trace, {}, 3);
  disturb(trace, {{0, 1e-3}, {5e7, -1e-3}, {-3e7, 4e-4}}, middle);
  const ClockAlignment found = align_clocks(trace);
  CHECK(found.untied.empty());
  CHECK(found.notes.count("clock.wild_drift") == 2);
  CHECK(found.notes.count("clock.step") == 0);
  CHECK(found.clocks[1].segments[0].drift == doctest::Approx(-2e-3 / 1.001).epsilon(1e-3));
  // Usual clocks get no note, and the bounds stay those of usual drifts.
  Trace usual = run_of(3, 1, 40);
  add_messages(usual, {}, 3);
  disturb(usual, random_clocks(3, 3), middle);
  CHECK(align_clocks(usual).notes.count("clock.wild_drift") == 0);
}

TEST_CASE("clock faults: collectives that synchronise no ranks give no steep drift") {
  int64_t found_out = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Trace trace = run_of(2, 4, 2);
    const int64_t middle = middle_of(trace);
    add_messages(trace, {}, 2);
    add_collectives(trace, "layernorm-grads-all-reduce", seed, false);
    add_collectives(trace, "params-all-gather", seed);
    disturb(trace, random_clocks(8, seed), middle);
    const ClockAlignment found = align_clocks(trace);
    CHECK(found.notes.count("clock.wild_drift") == 0);
    found_out += found.notes.count("clock.collective_not_shared");
  }
  CHECK(found_out > 10);
}

TEST_CASE("clock faults: clocks hours apart do not make steps restart") {
  std::vector<Op> ops;
  for (int32_t rank = 0; rank < 3; ++rank)
    for (int32_t step = 0; step < 5; ++step) {
      Op op;
      op.rank = rank;
      op.step = step;
      op.start_ns = rank * int64_t{7'200'000'000'000} + step * int64_t{1'000'000'000};
      op.end_ns = op.start_ns + 900'000'000;
      ops.push_back(op);
    }
  CHECK(!steps_restart(ops));
  for (Op& op : ops) {
    op.start_ns -= op.step * int64_t{1'000'000'000};
    op.end_ns -= op.step * int64_t{1'000'000'000};
  }
  CHECK(steps_restart(ops));
}

TEST_CASE("clock faults: in a cycle that contradicts itself, the wrong tie is named and the rest is aligned") {
  for (const bool collective : {false, true}) {
    CAPTURE(collective);
    Trace trace = run_of(3, 6, 20);
    const int64_t middle = middle_of(trace);
    add_messages(trace, {}, 3);
    add_collectives(trace, "params-all-gather", 6);
    // All that ranks 0 and 1 (or the collectives of rank 4) say of each other is 40 ms off, in step with itself.
    for (size_t i = 0; i < trace.cells.size(); ++i) {
      const CellKind kind = trace.cells.kind[i];
      const bool wrong = collective ? trace.cells.part[i] == 4 && kind == CellKind::kCollective
                                    : trace.cells.part[i] == 0 && is_message(kind);
      if (!wrong) continue;
      trace.cells.start_ns[i] += 40'000'000;
      trace.cells.end_ns[i] += 40'000'000;
    }
    const std::vector<Clock> clocks = random_clocks(18, 8);
    disturb(trace, clocks, middle);
    trace.cells.sort();
    const ClockAlignment found = align_clocks(trace);
    CHECK(found.untied.empty());
    CAPTURE(note_of(found, "clock.bad_match"));
    CHECK(found.notes.count("clock.bad_match") == (collective ? 2 : 1));  // to the one before, and the one after
    const std::string note = note_of(found, "clock.bad_match");
    CHECK(note.find(collective ? "rank 4" : "between rank 0 and rank 1") != std::string::npos);
    CHECK(note.find("contradict those around") != std::string::npos);
    for (size_t p = 1; p < 18; ++p) {
      CAPTURE(p);
      const double truth_ns = clocks[p].offset_ns - clocks[0].offset_ns;
      CHECK(std::abs(static_cast<double>(found.clocks[p].segments[0].offset_ns) - truth_ns) < 200'000);
    }
  }
}

TEST_CASE("clock faults: half of a tie's matches are never left out as a few") {
  Trace trace = run_of(2, 1, 3);
  const int64_t middle = middle_of(trace);
  add_messages(trace, {}, 2);
  std::vector<Clock> clocks = random_clocks(2, 4);
  clocks[1].jump_ns = 7e6;  // with too few messages to detect a clock that was set
  clocks[1].jump_at_ns = middle;
  disturb(trace, clocks, middle);
  const ClockAlignment found = align_clocks(trace);
  // The messages contradict each other, and so does the order of the cells.
  CHECK(found.notes.count("clock.contradicting_tie") + found.notes.count("clock.step") >= 1);
  CHECK(found.notes.count("clock.bad_match") == 0);
}

TEST_CASE("graph: negative cycles far apart are found at once, long ones too") {
  std::vector<align::Limit> limits;
  for (int32_t i = 0; i < 300; ++i) {
    limits.push_back({i, i + 1, 1, i});
    limits.push_back({i + 1, i, i % 50 == 7 ? -2.0 : 1.0, i});
  }
  const auto cycles = align::negative_cycles(301, limits);
  CHECK(cycles.size() == 6);
  for (const auto& cycle : cycles) CHECK(cycle.size() == 2);
  limits.clear();
  for (int32_t i = 0; i < 300; ++i) limits.push_back({i, (i + 1) % 300, i == 0 ? -299.5 : 1.0, i});
  const auto ring = align::negative_cycles(300, limits);
  REQUIRE(ring.size() == 1);
  CHECK(ring[0].size() == 300);
  limits[0].max = -299;
  CHECK(align::negative_cycles(300, limits).empty());
}

TEST_CASE("align: messages of several chunks, in a loop and in a V") {
  for (const auto& [name, chunks] :
       {std::pair("vpp", 2), std::pair("vpp", 3), std::pair("zb-v", 2), std::pair("dualpipe-v", 2)}) {
    CAPTURE(name);
    SimulateOptions options;
    options.schedule = *make_schedule(name, {.stages = 4, .micro_batches = 8, .chunks = chunks});
    options.steps = 12;
    options.costs = {8'000'000, 8'000'000, 8'000'000, 16'000'000, 24'000'000, 500'000};
    Trace trace = std::move(simulate_run(options)->trace);
    trace.cells.sort();
    add_chunk_messages(trace, options.schedule);
    trace.clock = ClockState::kUnaligned;
    const Cells truth = trace.cells;
    std::vector<Clock> clocks = random_clocks(4, 17);
    clocks[0] = {};
    disturb(trace, clocks, middle_of(trace));
    trace.cells.sort();
    const ClockAlignment found = align_clocks(trace, {{}, true});
    CHECK(found.untied.empty());
    CHECK(found.notes.count("clock.bad_match") + found.notes.count("clock.contradicting_tie") == 0);
    for (size_t p = 1; p < 4; ++p) CHECK(found.clocks[p].evidence == ClockEvidence::kMessages);
    CHECK(worst_error(trace, truth, found) < 60'000);
  }
}

TEST_CASE("align: collectives of profiles tie ranks by comms id, and by group and number") {
  const auto rank = [](int number, int late_us, bool ids) {
    std::vector<std::string> events;
    for (int k = 0; k < 8; ++k) {
      // Everyone leaves 5 µs after the last came, and rank 1's clock is 3 ms ahead.
      const int came = k * 1000 + (number == k % 2 ? 100 : 20), left = k * 1000 + 105;
      const std::string who = ids ? R"("Comms Id":")" + std::to_string(900 + k) + "\""
                                  : R"("Seq":)" + std::to_string(k) + R"(,"Process Group Name":"0")";
      events.push_back(torch_event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 20,
                                   std::to_string(came + late_us), std::to_string(left - came),
                                   R"("stream":20,"device":0,"Collective name":"allreduce",)" + who));
    }
    return torch_file(events, number);
  };
  for (const bool ids : {true, false}) {
    CAPTURE(ids);
    const Folder folder;
    Trace trace =
        read_with("kineto", {folder.add("r0.json", rank(0, 0, ids)), folder.add("r1.json", rank(1, 3000, ids))});
    REQUIRE(trace.parts.size() == 2);
    const ClockAlignment found = align_clocks(trace, {{}, true});
    CHECK(found.untied.empty());
    CHECK(found.clocks[1].evidence == ClockEvidence::kCollectives);
    CHECK(found.match_count == 8);
    CHECK(std::abs(found.clocks[1].segments[0].offset_ns - 3'000'000) < 1000);
    // Without a pipeline they are moved only when that is asked for.
    AlignOptions options;
    options.mode = AlignMode::kAuto;
    REQUIRE(map_clocks(trace, options));
    CHECK(trace.alignment == AlignState::kRaw);
    options.mode = AlignMode::kAlways;
    REQUIRE(map_clocks(trace, options));
    CHECK(trace.alignment == AlignState::kMapped);
    const int64_t first = trace.parts[0].slices.start_ns[0];
    trace = drawn_copy(trace);
    CHECK(trace.parts[0].slices.start_ns[0] == first);
    CHECK(std::abs(trace.parts[1].slices.start_ns[0] + 80'000 - first) < 1000);
  }
}

TEST_CASE("finding schedule.late_start: seen on common time, and not where clocks leave it open") {
  SimulateOptions options;
  options.schedule = *make_schedule("1f1b", {.stages = 4, .micro_batches = 8});
  Trace trace = std::move(simulate_run(options)->trace);
  trace.cells.sort();
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.part[i] >= 1) {
      trace.cells.start_ns[i] += 12'000'000;
      trace.cells.end_ns[i] += 12'000'000;
    }
  const auto late = [](const Trace& asked) {
    std::vector<Finding> findings;
    add_late(asked, theory_of(asked), 1, findings);
    return std::any_of(findings.begin(), findings.end(),
                       [](const Finding& f) { return f.id == "schedule.late_start"; });
  };
  CHECK(late(trace));
  // Machines whose raw clocks hide it: it shows once they are mapped, as long as the bounds are tighter than it is
  // late.
  trace.clock = ClockState::kUnaligned;
  for (size_t p = 0; p < 4; ++p) trace.parts[p].machine = static_cast<int32_t>(p);
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.part[i] >= 1) {
      trace.cells.start_ns[i] -= 500'000'000;
      trace.cells.end_ns[i] -= 500'000'000;
    }
  CHECK(!late(trace));
  trace.alignment = AlignState::kMapped;
  for (const int64_t half : {100'000, 3'000'000}) {
    for (size_t p = 0; p < 4; ++p) {
      ClockSegment segment;
      segment.offset_ns = p == 0 ? 0 : -500'000'000;
      segment.offset_half_ns = p == 0 ? 0 : half;
      segment.reference_rank = 0;
      trace.parts[p].clock_map.segments = {segment};
    }
    CHECK(late(trace) == (half == 100'000));
  }
}
