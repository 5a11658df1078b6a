#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "diagnosis/causes/beyond_noise.h"
#include "diagnosis/diff/diff_answer.h"
#include "diagnosis/diff/diff_parts.h"
#include "diagnosis/diff/diff_report.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "unit/make_trace.h"

using namespace stageline;
using testing::make_1f1b_trace;
using testing::TraceSpec;

namespace {

Trace linked(const TraceSpec& spec) {
  Trace trace = make_1f1b_trace(spec);
  trace.pipeline_stages = spec.stages;
  link_cells(trace);
  return trace;
}

double effect(const RunDiff& diff, DiffCause cause) {
  double sum = 0;
  for (const DiffGroup& g : diff.groups)
    if (g.cause == cause) sum += g.effect_ns;
  return sum;
}

double total(const RunDiff& diff) {
  double sum = 0;
  for (const DiffGroup& g : diff.groups) sum += g.effect_ns;
  return sum;
}

}  // namespace

TEST_CASE("diff: a run with itself has no groups but an empty rest") {
  const Trace a = linked({.stages = 3, .micro_batches = 5, .steps = 4, .dp = 2});
  const auto diff = diff_runs(a, a);
  REQUIRE(diff);
  CHECK(diff->change_ns == 0);
  CHECK_FALSE(diff->sure);
  REQUIRE(diff->groups.size() == 1);
  CHECK(diff->groups[0].cause == DiffCause::kRest);
  CHECK(diff->groups[0].effect_ns == 0);
  CHECK(diff->unmatched == 0);
  CHECK(diff->unused == 0);
  CHECK(headline(*diff).en.starts_with("No difference beyond noise"));
}

TEST_CASE("diff: times that changed on all stages are told by stage and kind, and add up") {
  const TraceSpec spec{.stages = 2, .micro_batches = 4, .steps = 3};
  TraceSpec slower = spec;
  slower.forward_ns += 1'000'000;
  const auto diff = diff_runs(linked(spec), linked(slower));
  REQUIRE(diff);
  // 1F1B on p stages takes (m + p − 1) · (F + B).
  CHECK(diff->a.step_ns == 5.0 * (8'050'000 + 16'200'000) + 5'000'000);  // and the time between steps
  CHECK(diff->change_ns == 5'000'000);
  CHECK(diff->sure);
  CHECK(diff->changes.empty());
  CHECK(effect(*diff, DiffCause::kCompute) == doctest::Approx(5e6));
  CHECK(std::abs(diff->groups.back().effect_ns) < 1);
  for (const DiffGroup& g : diff->groups) {
    if (g.cause != DiffCause::kCompute) continue;
    CHECK(g.kind == CellKind::kForward);
    CHECK(g.a_ns == 8'050'000);
    CHECK(g.b_ns == 9'050'000);
    CHECK(g.count == 12);
  }
}

TEST_CASE("diff: other sizes are told first, and the sum closes whatever differs") {
  const Trace a = linked({.stages = 4, .micro_batches = 4, .steps = 3});
  for (const TraceSpec& spec :
       {TraceSpec{.stages = 4, .micro_batches = 8, .steps = 3}, TraceSpec{.stages = 2, .micro_batches = 4, .steps = 5},
        TraceSpec{.stages = 4, .micro_batches = 4, .steps = 1, .dp = 3}}) {
    const auto diff = diff_runs(a, linked(spec));
    REQUIRE(diff);
    CHECK_FALSE(diff->changes.empty());
    for (const Text& change : diff->changes) CHECK_FALSE(change.zh.empty());
    CHECK(diff->groups.front().cause == DiffCause::kSchedule);
    CHECK(total(*diff) == doctest::Approx(diff->change_ns));
  }
  // Twice the micro-batches at the same times: all of it is the size.
  const auto more = diff_runs(a, linked({.stages = 4, .micro_batches = 8, .steps = 3}));
  REQUIRE(more);
  CHECK(more->change_ns == 4.0 * (8'050'000 + 16'200'000));
  CHECK(more->groups.front().effect_ns == doctest::Approx(more->change_ns));
}

TEST_CASE("diff: pauses here and there are one row, and counted") {
  SimulateOptions o;
  Result<Schedule> schedule = make_schedule("1f1b", {.stages = 4, .micro_batches = 8});
  REQUIRE(schedule);
  o.schedule = std::move(*schedule);
  o.steps = 8;
  o.dp = 2;
  o.jitter = 0.01;
  const auto made = [&] {
    Result<SimulatedRun> run = simulate_run(o);
    REQUIRE(run);
    run->trace.cells.sort();
    link_cells(run->trace);
    return std::move(run->trace);
  };
  const Trace a = made();
  Result<Fault> pauses = parse_fault("gc:40ms,0.04");
  REQUIRE(pauses);
  o.faults.push_back(*pauses);
  const auto diff = diff_runs(a, made());
  REQUIRE(diff);
  CHECK(total(*diff) == doctest::Approx(diff->change_ns));
  std::vector<DiffGroup> delays;
  for (const DiffGroup& g : diff->groups)
    if (g.cause == DiffCause::kDelay) delays.push_back(g);
  REQUIRE(delays.size() == 1);
  CHECK(delays[0].sure);
  CHECK(delays[0].stage == kUnknown);
  CHECK(delays[0].effect_ns == doctest::Approx(diff->change_ns).epsilon(0.1));
  CHECK(delays[0].paused > 10);
  CHECK(delays[0].paused * 10 <= delays[0].count);
  CHECK(delays[0].pause_ns == doctest::Approx(40e6).epsilon(0.05));
  CHECK(group_line(*diff, delays[0]).en.starts_with("pauses on several stages: "));
  CHECK(main_cause(*diff).en == "pauses on several stages");
}

TEST_CASE("diff: pauses are few, and hold nearly all") {
  std::vector<double> changes(100, 1000.0);
  DiffGroup group;
  tell_pauses(changes, group);
  CHECK(group.paused == 0);  // all are later alike
  changes[3] = changes[50] = 4e6;
  tell_pauses(changes, group);
  CHECK(group.paused == 2);
  CHECK(group.pause_ns == 4e6);
  DiffGroup other;
  for (size_t i = 0; i < 30; ++i) changes[i] = -4e6;  // as much became earlier
  tell_pauses(changes, other);
  CHECK(other.paused == 0);
  tell_pauses({}, other);
  CHECK(other.paused == 0);
}

TEST_CASE("diff: one rank that changed is named, and a label that counts on matches") {
  const TraceSpec spec{.stages = 2, .micro_batches = 3, .steps = 4, .dp = 2};
  const Trace a = linked(spec);
  Trace b = make_1f1b_trace(spec);
  b.pipeline_stages = 2;
  for (size_t i = 0; i < b.cells.size(); ++i) {
    b.cells.micro_batch[i] += 100;
    // The last cell of rank 3: nothing waits for it.
    if (b.cells.part[i] == 2 && b.cells.kind[i] == CellKind::kBackward && b.cells.micro_batch[i] == 102)
      b.cells.end_ns[i] += 3'000'000;
  }
  link_cells(b);
  const auto diff = diff_runs(a, b);
  REQUIRE(diff);
  CHECK(diff->unmatched == 0);
  CHECK(diff->change_ns == 0);  // the next step starts when it did: the time between steps is shorter by as much
  REQUIRE_FALSE(diff->groups.empty());
  CHECK(diff->groups[0].cause == DiffCause::kCompute);
  CHECK(diff->groups[0].rank == 2);
  CHECK(diff->groups[0].effect_ns == doctest::Approx(3e6));
}

TEST_CASE("diff: hostile runs are refused or survive") {
  Trace none;
  const Trace fine = linked({});
  CHECK_FALSE(diff_runs(none, fine));
  CHECK_FALSE(diff_runs(fine, none));
  Trace odd = make_1f1b_trace({.steps = 2});
  for (size_t i = 0; i < odd.cells.size(); ++i) {
    if (i % 3 == 0) odd.cells.micro_batch[i] = kUnknown;
    if (i % 7 == 0) odd.cells.end_ns[i] = odd.cells.start_ns[i] - 5;
    if (i % 5 == 0) odd.cells.start_ns[i] = odd.cells.start_ns[0];
    if (i % 11 == 0) odd.cells.step[i] = kUnknown;
  }
  odd.parts[2].stage = kUnknown;
  odd.cells.sort();
  link_cells(odd);
  const auto diff = diff_runs(odd, fine);
  if (diff) CHECK(total(*diff) == doctest::Approx(diff->change_ns));
  const auto back = diff_runs(fine, odd);
  if (back) CHECK(total(*back) == doctest::Approx(back->change_ns));
}

TEST_CASE("diff: what is beyond noise depends on how many values agree") {
  CHECK(beyond_noise(1, 0, 2));
  CHECK_FALSE(beyond_noise(0, 0, 2));
  CHECK_FALSE(beyond_noise(9, 1, 3));  // Student's t with two degrees of freedom: 9.92
  CHECK(beyond_noise(10, 1, 3));
  CHECK(beyond_noise(-3, 1, 40));
  CHECK_FALSE(beyond_noise(2.5, 1, 40));
  CHECK(beyond_noise(1, std::nan(""), 1));
}
