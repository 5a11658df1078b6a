// Cells of mstx ranges: labels only where a schedule is proven.
#include <doctest/doctest.h>

#include <algorithm>

#include "pipeline/cells/find_cells.h"
#include "pipeline/cells/rank_layout.h"
#include "pipeline/cells/row_alignment.h"
#include "pipeline/order/recognise.h"
#include "range_traces.h"

using namespace stageline;
using namespace stageline::testing;

namespace {

bool find(Trace& trace, RangeFindings* found = nullptr) {
  const CellRules rules = shipped_cell_rules();
  return find_range_cells(trace, rules, {}, found);
}

struct Compared {
  int64_t right = 0, wrong = 0, unknown = 0;
};

// Every compute cell against what the row was made as.
Compared compare(const Trace& trace, const RangeRun& run) {
  Compared out;
  const Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!is_compute(cells.kind[i])) continue;
    const auto& stage = run.stages[cells.part[i]];
    const auto row =
        std::find_if(stage.begin(), stage.end(), [&](const MadeRange& r) { return r.start_ns == cells.start_ns[i]; });
    REQUIRE(row != stage.end());
    if (cells.micro_batch[i] == kUnknown) {
      ++out.unknown;
      continue;
    }
    const auto end = row->truth.actions + row->truth.action_count;
    const bool right =
        std::find(row->truth.actions, end, Action{cells.kind[i], cells.micro_batch[i], cells.chunk[i]}) != end;
    ++(right ? out.right : out.wrong);
  }
  return out;
}

void erase_range(RangeRun& run, size_t stage, size_t row) {
  run.stages[stage].erase(run.stages[stage].begin() + static_cast<std::ptrdiff_t>(row));
}

}  // namespace

TEST_CASE("range cells: schedules whose ranges say nothing are proven by kinds and time") {
  struct Case {
    const char* name;
    ScheduleSizes sizes;
  };
  const Case cases[] = {{"1f1b", {.stages = 4, .micro_batches = 8}},
                        {"vpp", {.stages = 4, .micro_batches = 8, .chunks = 2}},
                        {"vpp", {.stages = 2, .micro_batches = 4, .chunks = 3}},
                        {"zb-h1", {.stages = 4, .micro_batches = 8}},
                        {"dualpipe-v-mindspeed", {.stages = 4, .micro_batches = 10, .chunks = 2}},
                        {"dualpipe-v-mindspeed", {.stages = 2, .micro_batches = 5, .chunks = 2, .dw_detach = true}}};
  for (const Case& one : cases)
    for (const bool step_time : {true, false}) {
      CAPTURE(one.name);
      CAPTURE(step_time);
      const RangeRun run = make_ranges(one.name, one.sizes, 3);
      Trace trace = range_trace(run, step_time);
      say_pipeline(trace);
      REQUIRE(find(trace));
      const Compared seen = compare(trace, run);
      CHECK(seen.wrong == 0);
      CHECK(seen.unknown == 0);
      CHECK(seen.right > 0);
      CHECK(extent_of(trace).step_count == 3);
      const Recognition recognition = recognise(trace);
      REQUIRE(recognition.recognised);
      CHECK(recognition.best().equal_lists == recognition.lists);
      CHECK(trace.cells.step.front() == (step_time ? 10 : 0));
    }
}

TEST_CASE("range cells: a row that is missing costs its own label and no other") {
  for (const size_t stage : {0, 1, 3})
    for (size_t row = 0; row < 16; ++row) {
      CAPTURE(stage);
      CAPTURE(row);
      RangeRun run = make_ranges("1f1b", {.stages = 4, .micro_batches = 8}, 2);
      erase_range(run, stage, row);
      Trace trace = range_trace(run, true);
      say_pipeline(trace);
      REQUIRE(find(trace));
      const Compared seen = compare(trace, run);
      CHECK(seen.wrong == 0);
      CHECK(seen.right + seen.unknown == 127);
      CHECK(seen.unknown <= 4);  // what time does not decide
      CHECK(trace.diagnostics.count("cells.off_schedule.rank_" + std::to_string(stage)) == 1);
    }
}

TEST_CASE("range cells: rows in no schedule's order stay without labels") {
  RangeRun run = make_ranges("1f1b", {.stages = 4, .micro_batches = 8}, 2);
  for (auto& stage : run.stages)  // kinds in an order of their own, times as they were
    for (size_t i = 0; i < stage.size(); ++i) stage[i].name = i * 7 % 16 < 8 ? "forward_step" : "backward_step";
  Trace trace = range_trace(run, true);
  say_pipeline(trace);
  REQUIRE(find(trace));
  for (size_t i = 0; i < trace.cells.size(); ++i) CHECK(trace.cells.micro_batch[i] == kUnknown);
  CHECK(trace.diagnostics.count("cells.unproven") == 128);
}

TEST_CASE("range cells: labels that time contradicts are not given") {
  RangeRun run = make_ranges("1f1b", {.stages = 4, .micro_batches = 8}, 2);
  for (MadeRange& range : run.stages[2]) {  // before its inputs are there
    range.start_ns -= 60'000'000;
    range.end_ns -= 60'000'000;
  }
  Trace trace = range_trace(run, true);
  say_pipeline(trace);
  REQUIRE(find(trace));
  for (size_t i = 0; i < trace.cells.size(); ++i) CHECK(trace.cells.micro_batch[i] == kUnknown);
  CHECK(trace.diagnostics.count("cells.unproven") > 0);
  // Two machines may be apart by any offset.
  Trace apart = range_trace(run, true);
  say_pipeline(apart);
  apart.clock = ClockState::kUnaligned;
  for (Part& part : apart.parts) part.machine = part.rank == 2 ? 1 : 0;
  REQUIRE(find(apart));
  CHECK(compare(apart, run).unknown == 0);
  CHECK(compare(apart, run).wrong == 0);
}

TEST_CASE("range cells: numbers that ranges say contradict a schedule, or anchor it") {
  RangeRun run = make_ranges("1f1b", {.stages = 4, .micro_batches = 8}, 2);
  for (auto& stage : run.stages)
    for (MadeRange& range : stage) range.micro_batch = range.truth.actions[0].micro_batch;
  erase_range(run, 1, 0);
  {
    Trace trace = range_trace(run, true);
    say_pipeline(trace);
    REQUIRE(find(trace));
    CHECK(compare(trace, run).unknown == 0);
    CHECK(compare(trace, run).wrong == 0);
  }
  for (auto& stage : run.stages)
    for (MadeRange& range : stage) range.micro_batch = 7 - range.truth.actions[0].micro_batch;
  Trace trace = range_trace(run, true);
  say_pipeline(trace);
  REQUIRE(find(trace));
  CHECK(trace.diagnostics.count("cells.schedule") == 0);
  for (size_t i = 0; i < trace.cells.size(); ++i)  // what a range says of itself stays
    CHECK(trace.cells.micro_batch[i] != kUnknown);
}

TEST_CASE("range cells: MindSpeed's numbers of chunk 1 begin at m") {
  RangeRun run = make_ranges("dualpipe-v-mindspeed", {.stages = 2, .micro_batches = 6, .chunks = 2}, 1);
  for (auto& stage : run.stages)
    for (MadeRange& range : stage)
      if (const Action& a = range.truth.actions[0]; a.kind == CellKind::kForward)
        range.micro_batch = a.micro_batch + 6 * a.chunk;
  Trace trace = range_trace(run, true);
  say_pipeline(trace);
  REQUIRE(find(trace));
  CHECK(compare(trace, run).unknown == 0);
  CHECK(compare(trace, run).wrong == 0);
}

TEST_CASE("range cells: empty pops, nested ranges and ranges without a device side are counted, not drawn") {
  RangeRun run = make_ranges("dualpipe-v-mindspeed", {.stages = 2, .micro_batches = 6, .chunks = 2}, 1);
  std::vector<MadeRange>& first = run.stages[0];
  const MadeRange last = first.back();  // a backward
  first.push_back({"WeightGradStore.pop", last.end_ns + 2'000, last.end_ns + 4'000, kUnknown, kUnknown, {}, 0});
  first.push_back({"forward_step", last.end_ns + 9'000, last.end_ns + 19'000, kUnknown, kUnknown, {}, 0, false});
  MadeRange inner = first[0];
  inner.start_ns += 1'000;
  inner.end_ns -= 1'000;
  first.insert(first.begin() + 1, inner);
  Trace trace = range_trace(run, true);
  say_pipeline(trace);
  REQUIRE(find(trace));
  CHECK(trace.diagnostics.count("cells.empty_pop") == 1);
  CHECK(trace.diagnostics.count("cells.no_device") == 1);
  CHECK(trace.diagnostics.count("cells.nested") == 1);
  CHECK(compare(trace, run).unknown == 0);
  CHECK(compare(trace, run).wrong == 0);
}

TEST_CASE("range cells: other ranges give no cells, and a trace without ranges gives none") {
  RangeRun run = make_ranges("1f1b", {.stages = 2, .micro_batches = 4}, 1);
  for (auto& stage : run.stages)
    for (MadeRange& range : stage) range.name = "dataloader";
  Trace trace = range_trace(run, true);
  CHECK_FALSE(find(trace));
  CHECK(trace.cells.size() == 0);
  Trace empty;
  CHECK_FALSE(find(empty));
}

TEST_CASE("rank map: groups tell stages in any order of ranks, sizes in Megatron's, context parallel counted") {
  RangeRun run = make_ranges("1f1b", {.stages = 8, .micro_batches = 8}, 1);
  Trace trace = range_trace(run, true);
  for (Part& part : trace.parts)
    part.metadata.push_back({"distributed_args",
                             R"({"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 4,
    "data_parallel_size": 1, "context_parallel_size": 2, "expert_model_parallel_size": 1, "world_size": 8})"});
  const RankLayout sizes = layout_from_sizes(trace);
  REQUIRE(sizes.stages == 4);
  for (int32_t r = 0; r < 8; ++r) {
    CHECK(sizes.stage[r] == r / 2);
    CHECK(sizes.dp[r] == r % 2);
  }
  const RankMap map = rank_map(trace, {});
  CHECK(map.order == "tp-cp-ep-dp-pp");
  CHECK(map.places[5].cp == 1);
  CHECK(map.places[5].pp == 2);
  CHECK(map.missing.empty());
  // Groups that say pp is the fastest win over sizes.
  for (Part& part : trace.parts)
    part.metadata.push_back(
        {"parallel_group_info", part.rank < 4 ? R"({"g": {"group_name": "pp", "global_ranks": [0, 1, 2, 3]}})"
                                              : R"({"g": {"group_name": "pp", "global_ranks": [4, 5, 6, 7]}})"});
  const RankLayout groups = known_layout(trace, {});
  REQUIRE(groups.stages == 4);
  CHECK(groups.stage[5] == 1);
  const std::string order = rank_map(trace, {}).order;
  CHECK(order.find("pp") < order.find("cp"));
  // Options against them are refused.
  RankLayoutOptions options;
  options.pp = 4, options.tp = 2;
  REQUIRE(place_ranks(trace, options));
  CHECK(trace.diagnostics.count("cells.layout_contradicted") == 1);
  CHECK(trace.parts[5].stage == 1);
}

TEST_CASE("rank map: pipelines are context-parallel where the sizes fit every rank and the stages that were found") {
  Trace trace;
  for (int32_t rank = 0; rank < 8; ++rank) {
    Part part;
    part.rank = rank, part.stage = rank / 2, part.dp = rank % 2;
    trace.parts.push_back(std::move(part));
  }
  const auto cp = [&](int32_t stages, int32_t context, int32_t data) {
    RankLayoutOptions options;
    options.pp = stages, options.cp = context, options.dp = data;
    return context_parallel_of(trace, options);
  };
  CHECK(cp(0, 0, 0) == 1);
  CHECK(cp(4, 2, 0) == 2);
  CHECK(cp(4, 2, 1) == 2);
  CHECK(cp(0, 2, 0) == 1);  // --cp without --pp places no rank
  CHECK(cp(2, 2, 0) == 1);  // four stages were found
  CHECK(cp(4, 3, 0) == 1);  // of two pipelines
  trace.parts[7].rank = 8;  // has no place in 4 × 2
  CHECK(cp(4, 2, 1) == 1);
}

TEST_CASE("rank map: a rank that is not here is named, sizes that do not make the world are not believed") {
  RangeRun run = make_ranges("1f1b", {.stages = 4, .micro_batches = 8}, 1);
  Trace trace = range_trace(run, true);
  say_pipeline(trace);
  trace.parts.erase(trace.parts.begin() + 2);
  run.stages.erase(run.stages.begin() + 2);
  REQUIRE(find(trace));
  CHECK(trace.diagnostics.count("cells.ranks_missing") == 1);
  CHECK(compare(trace, run).unknown == 0);
  CHECK(rank_map(trace, {}).missing == std::vector<int32_t>{2});
  Trace odd = range_trace(run, true);
  odd.parts[0].metadata.push_back({"distributed_args", R"({"pipeline_model_parallel_size": 4, "world_size": 6})"});
  CHECK_FALSE(stated_sizes(odd));
}

TEST_CASE("row alignment: equal outside the edits, unknown within") {
  const std::string found = "FFFBFBFB", expected = "FFFFBFBFBB";
  const auto same = [&](size_t i, size_t j) { return found[i] == expected[j]; };
  const RowAlignment way = align_rows(found.size(), expected.size(), same);
  REQUIRE(way.close);
  CHECK(way.edits == 2);
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == expected[way.early[i]]);
    CHECK(found[i] == expected[way.late[i]]);
  }
  CHECK(way.early[0] == 0);
  CHECK(way.late[0] == 1);
  CHECK(align_rows(0, 3, [](size_t, size_t) { return true; }).edits == 3);
  CHECK(align_rows(0, 0, [](size_t, size_t) { return true; }).close);
  CHECK_FALSE(align_rows(1000, 10, [](size_t, size_t) { return true; }).close);
  CHECK_FALSE(align_rows(200, 200, [](size_t, size_t) { return false; }).close);
}
