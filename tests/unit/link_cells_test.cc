#include "pipeline/cells/link_cells.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "unit/make_trace.h"

using namespace stageline;
using namespace stageline::testing;

namespace {

using Pair = std::pair<uint32_t, uint32_t>;
std::set<Pair> pairs(const Trace& trace) {
  std::set<Pair> result;
  for (const Link& link : trace.links) result.insert({link.from_cell, link.to_cell});
  REQUIRE(result.size() == trace.links.size());
  return result;
}

}  // namespace

TEST_CASE("forwards are linked down the stages, backwards up") {
  Trace trace = make_1f1b_trace({.stages = 3, .micro_batches = 4, .steps = 2});
  link_cells(trace);
  std::set<Pair> expected;
  for (int32_t step = 0; step < 2; ++step)
    for (int32_t m = 0; m < 4; ++m)
      for (int32_t s = 0; s < 2; ++s) {
        expected.insert(
            {find_cell(trace, step, s, CellKind::kForward, m), find_cell(trace, step, s + 1, CellKind::kForward, m)});
        expected.insert(
            {find_cell(trace, step, s + 1, CellKind::kBackward, m), find_cell(trace, step, s, CellKind::kBackward, m)});
      }
  CHECK(pairs(trace) == expected);
  CHECK(std::is_sorted(trace.links.begin(), trace.links.end(), [](const Link& a, const Link& b) {
    return Pair(a.from_cell, a.to_cell) < Pair(b.from_cell, b.to_cell);
  }));
  for (const Link& link : trace.links) CHECK(trace.cells.start_ns[link.to_cell] >= trace.cells.end_ns[link.from_cell]);
  link_cells(trace);  // replaces, does not add
  CHECK(pairs(trace) == expected);
}

TEST_CASE("chunks in a loop wrap from the last stage to the first") {
  Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 3, .chunks = 2});
  CHECK(guess_chunk_layout(trace) == ChunkLayout::kLoop);
  link_cells(trace);
  const std::set<Pair> links = pairs(trace);
  CHECK(links.size() == 2 * 3 * 3);
  CHECK(links.contains(
      {find_cell(trace, 0, 1, CellKind::kForward, 2, 0), find_cell(trace, 0, 0, CellKind::kForward, 2, 1)}));
  CHECK(links.contains(
      {find_cell(trace, 0, 0, CellKind::kBackward, 1, 1), find_cell(trace, 0, 1, CellKind::kBackward, 1, 0)}));
}

TEST_CASE("chunks in a V turn around on their rank; the times tell which it is") {
  Trace trace = make_1f1b_trace({.stages = 3, .micro_batches = 4, .chunks = 2, .layout = ChunkLayout::kV});
  CHECK(guess_chunk_layout(trace) == ChunkLayout::kV);
  link_cells(trace);
  const std::set<Pair> links = pairs(trace);
  CHECK(links.size() == 2 * 4 * 5);
  CHECK(links.contains(
      {find_cell(trace, 0, 2, CellKind::kForward, 0, 0), find_cell(trace, 0, 2, CellKind::kForward, 0, 1)}));
  CHECK(links.contains(
      {find_cell(trace, 0, 2, CellKind::kForward, 0, 1), find_cell(trace, 0, 1, CellKind::kForward, 0, 1)}));
  trace.clock = ClockState::kPerRank;  // then times of different ranks say nothing
  CHECK(guess_chunk_layout(trace) == ChunkLayout::kLoop);
}

TEST_CASE("tensor- and data-parallel ranks keep to themselves") {
  Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 2, .dp = 2, .tp = 2});
  link_cells(trace);
  CHECK(trace.links.size() == 2 * 2 * 2 * 2);
  for (const Link& link : trace.links) {
    const Part& from = trace.parts[trace.cells.part[link.from_cell]];
    const Part& to = trace.parts[trace.cells.part[link.to_cell]];
    CHECK(from.dp == to.dp);
    CHECK(from.rank % 2 == to.rank % 2);
    CHECK(std::abs(from.stage - to.stage) == 1);
  }
  // A rank whose log is missing leaves the others linked.
  trace.cells.filter([&](size_t i) { return trace.cells.part[i] != 0; });
  link_cells(trace);
  CHECK(trace.links.size() == 3 * 2 * 2);
}

TEST_CASE("input gradients link like backwards, weight gradients not, F&B both ways") {
  Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 1, .steps = 0});
  const auto add = [&](int32_t part, CellKind kind, int64_t start, int64_t end) {
    trace.cells.add({0, part, kind, 0, 0, start, end, kNoSlice});
    return static_cast<uint32_t>(trace.cells.size() - 1);
  };
  const uint32_t both = add(0, CellKind::kForwardBackward, 0, 10);
  const uint32_t forward = add(1, CellKind::kForward, 10, 20);
  const uint32_t input = add(1, CellKind::kInputGrad, 20, 30);
  add(1, CellKind::kWeightGrad, 30, 40);
  link_cells(trace);
  CHECK(pairs(trace) == std::set<Pair>{{both, forward}, {input, both}});
}

TEST_CASE("a job in pieces is left at its last and reached at its first") {
  Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 1, .steps = 0});
  const auto add = [&](int32_t part, int64_t start, int64_t end) {
    trace.cells.add({0, part, CellKind::kForward, 0, 0, start, end, kNoSlice});
    return static_cast<uint32_t>(trace.cells.size() - 1);
  };
  add(0, 0, 10);
  const uint32_t last = add(0, 10, 20);
  add(1, 40, 50);
  const uint32_t first = add(1, 30, 40);
  link_cells(trace);
  CHECK(pairs(trace) == std::set<Pair>{{last, first}});
}

TEST_CASE("cells are not linked when their places are only guessed") {
  for (const int what : {0, 1, 2}) {
    Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 2});
    if (what == 0) std::fill(trace.cells.step.begin(), trace.cells.step.end(), kUnknown);
    if (what == 1) std::fill(trace.cells.micro_batch.begin(), trace.cells.micro_batch.end(), kUnknown);
    if (what == 2)
      for (Part& part : trace.parts) part.stage = kUnknown;
    link_cells(trace);
    CHECK(trace.links.empty());
  }
  Trace nothing;
  link_cells(nothing);
  CHECK(nothing.links.empty());
}
