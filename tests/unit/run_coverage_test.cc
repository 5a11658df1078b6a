#include "pipeline/measure/run_coverage.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "pipeline/cells/link_cells.h"
#include "readers/common/ranks.h"
#include "unit/facts_of_trace.h"
#include "unit/make_trace.h"

using namespace stageline;
using testing::make_1f1b_trace;

namespace {

Trace made(const testing::TraceSpec& spec) {
  Trace trace = make_1f1b_trace(spec);
  trace.pipeline_stages = spec.stages;
  link_cells(trace);
  return trace;
}

// The cells of parts for which keep() holds; parts stay, so places do too.
template <class Keep> void keep_parts(Trace& trace, Keep keep) {
  trace.cells.filter([&](size_t i) { return keep(trace.parts[trace.cells.part[i]]); });
  link_cells(trace);
}

// Cells that are not fed, as "F of stage 1".
std::vector<std::string> unfed(const Trace& trace, const RunCoverage& coverage) {
  std::vector<std::string> places;
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    if (coverage.fed(i)) continue;
    places.push_back(std::string(kind_code(trace.cells.kind[i])) +
                     std::to_string(trace.parts[trace.cells.part[i]].stage));
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

std::vector<Op> rounds(int steps, int64_t apart_ns) {
  std::vector<Op> ops;
  for (int s = 0; s < steps; ++s)
    for (int32_t rank = 0; rank < 2; ++rank)
      for (int32_t mb = 0; mb < 3; ++mb) {
        Op op;
        op.rank = rank;
        op.kind = CellKind::kForward;
        op.chunk = 0;
        op.micro_batch = mb;
        op.start_ns = s * apart_ns + mb * 10;
        op.end_ns = op.start_ns + 10;
        ops.push_back(op);
      }
  return ops;
}

}  // namespace

TEST_CASE("run coverage: a whole run is whole, in every layout") {
  for (const int32_t chunks : {1, 2})
    for (const ChunkLayout layout : {ChunkLayout::kLoop, ChunkLayout::kV}) {
      const Trace trace = made({.stages = 4, .micro_batches = 8, .steps = 2, .chunks = chunks, .layout = layout});
      const RunCoverage coverage(trace, theory_of(trace));
      CHECK(coverage.whole());
      CHECK(coverage.notes().empty());
      CHECK(coverage.part().en.empty());
      CHECK(coverage.stages() == 4);
      CHECK_FALSE(coverage.repeats());
      CHECK(unfed(trace, coverage).empty());
    }
}

TEST_CASE("run coverage: work that waits for a stage which was left out counts as not fed") {
  Trace trace = made({.stages = 4, .micro_batches = 8, .steps = 2});
  keep_parts(trace, [](const Part& part) { return part.stage != 2; });
  const RunCoverage coverage(trace, theory_of(trace));
  CHECK_FALSE(coverage.whole());
  CHECK(coverage.part().en == "stages 0, 1 and 3 of 4");
  CHECK(coverage.part().zh == "4 级中的第 0、1、3 级");
  CHECK(coverage.notes().en.starts_with("Only stages 0, 1 and 3 of 4 were read: "));
  CHECK(unfed(trace, coverage) == std::vector<std::string>{"B1", "F3"});
}

TEST_CASE("run coverage: replicas that lack different stages are counted") {
  Trace trace = made({.stages = 3, .micro_batches = 8, .steps = 2, .dp = 2});
  keep_parts(trace, [](const Part& part) { return part.dp == 0 || part.stage == 1; });
  const RunCoverage coverage(trace, theory_of(trace));
  CHECK(coverage.part().en == "4 of the 6 stages of all pipelines");
  CHECK(coverage.part_of_all());
  for (size_t i = 0; i < trace.cells.size(); ++i) CHECK(coverage.fed(i) == (trace.parts[trace.cells.part[i]].dp == 0));
}

TEST_CASE("run coverage: the warm-up tells of stages that are missing at the end") {
  Trace trace = made({.stages = 5, .micro_batches = 8, .steps = 2});
  keep_parts(trace, [](const Part& part) { return part.stage < 3; });
  for (Part& part : trace.parts)
    if (part.stage >= 3) part.stage = kUnknown;
  trace.pipeline_stages = 3;
  const RunCoverage coverage(trace, theory_of(trace));
  CHECK(coverage.lacks_end());
  CHECK(coverage.stages() == 5);
  CHECK(coverage.part().en == "stages 0 to 2 of 5");
  CHECK(unfed(trace, coverage) == std::vector<std::string>{"B2"});
}

TEST_CASE("run coverage: messages of the last stage tell of one that is missing, those of a ring do not") {
  const auto without_last = [](std::initializer_list<std::pair<int32_t, CellKind>> messages) {
    Trace trace = made({.stages = 3, .micro_batches = 2, .steps = 2});
    keep_parts(trace, [](const Part& part) { return part.stage < 2; });
    for (Part& part : trace.parts)
      if (part.stage >= 2) part.stage = kUnknown;
    trace.pipeline_stages = 2;
    for (const auto& [stage, kind] : messages)
      for (size_t i = 0; i < trace.cells.size(); ++i)
        if (trace.parts[trace.cells.part[i]].stage == stage) {
          Cell cell = trace.cells.at(i);
          cell.kind = kind;
          trace.cells.add(cell);
          break;
        }
    trace.cells.sort();
    return RunCoverage(trace, theory_of(trace)).part().en;
  };
  CHECK(without_last({}).empty());
  CHECK(without_last({{0, CellKind::kSendForward}}).empty());
  CHECK(without_last({{1, CellKind::kSendForward}}) == "stages 0 and 1 of at least 3");
  CHECK(without_last({{1, CellKind::kRecvBackward}}) == "stages 0 and 1 of at least 3");
  CHECK(without_last({{1, CellKind::kSendForward}, {0, CellKind::kRecvForward}}).empty());
}

TEST_CASE("run coverage: work that is there twice is found, a few repetitions do not spoil the rest") {
  Trace trace = made({.stages = 2, .micro_batches = 30, .steps = 1});
  const size_t n = trace.cells.size();
  trace.cells.add(trace.cells.at(5));
  trace.cells.sort();
  const RunCoverage few(trace, theory_of(trace));
  CHECK_FALSE(few.repeats());
  int64_t repeated = 0;
  for (size_t i = 0; i < trace.cells.size(); ++i) repeated += few.repeated(i);
  CHECK(repeated == 2);
  for (size_t i = 0; i < n; i += 4) trace.cells.add(trace.cells.at(i));
  trace.cells.sort();
  CHECK(RunCoverage(trace, theory_of(trace)).repeats());
}

TEST_CASE("run coverage: meaningless labels do no harm") {
  Trace trace = made({.stages = 2, .micro_batches = 4, .steps = 1});
  trace.cells.chunk[0] = INT32_MAX;
  trace.cells.chunk[1] = -7;
  trace.parts[1].stage = 2'000'000'000;
  trace.parts[1].dp = 2'000'000'000;
  const RunCoverage coverage(trace, theory_of(trace));
  CHECK(coverage.fed(0));
}

TEST_CASE("number steps: rounds that follow each other are steps") {
  std::vector<Op> ops = rounds(3, 100);
  Op late;  // a receive that was posted while the step before still ran
  late.rank = 0;
  late.kind = CellKind::kRecvForward;
  late.micro_batch = 0;
  for (int k = 0; k < 3; ++k) {
    late.start_ns = k * 100 - 50;
    late.end_ns = k * 100;
    ops.push_back(late);
  }
  Op optimizer;
  optimizer.rank = 1;
  optimizer.kind = CellKind::kOptimizer;
  optimizer.start_ns = 150;
  optimizer.end_ns = 160;
  ops.push_back(optimizer);
  Diagnostics notes;
  number_steps(ops, "t", "row", notes);
  CHECK(notes.count("t.steps_numbered") == 1);
  for (size_t i = 0; i < 18; ++i) CHECK(ops[i].step == static_cast<int32_t>(i / 6));
  for (size_t k = 0; k < 3; ++k) CHECK(ops[18 + k].step == static_cast<int32_t>(k));
  CHECK(ops.back().step == 1);
}

TEST_CASE("number steps: without proof of rounds there is one step, and a note tells so") {
  for (const int64_t apart_ns : {0, 15, 25}) {  // rounds that overlap
    std::vector<Op> ops = rounds(2, apart_ns);
    Diagnostics notes;
    number_steps(ops, "t", "row", notes);
    CHECK(notes.count("t.steps_missing") == 1);
    for (const Op& op : ops) CHECK(op.step == 0);
  }
  std::vector<Op> ops = rounds(2, 100);
  ops.pop_back();  // one round lacks a forward
  Diagnostics notes;
  number_steps(ops, "t", "row", notes);
  CHECK(notes.count("t.steps_missing") == 1);
  ops = rounds(1, 100);
  number_steps(ops, "u", "row", notes);
  CHECK(notes.count("u.no_steps") == 1);
}
