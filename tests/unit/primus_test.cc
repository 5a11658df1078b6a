#include "reader_fixture.h"
#include "readers/common/ranks.h"
#include "readers/primus/rank_file.h"
#include "shared_data.h"

using namespace stageline;

namespace {

std::string iteration(const std::string& number, const std::string& more = "") {
  return "\"" + number +
         "\": {\"total\": 10.5, \"memory\": 60.7, \"fwd_start\": [0.5, 2], \"fwd_end\": [1.5, 3], \"bwd_start\": [4, "
         "7], "
         "\"bwd_end\": [6, 9]" +
         more + "}";
}
std::string config(int pp, int vp) {
  return "{\"world_size\": 8, \"dp_size\": 1, \"pp_size\": " + std::to_string(pp) +
         ", \"vp_size\": " + std::to_string(vp) + ", \"num_mbs\": 2}";
}

}  // namespace

TEST_CASE("primus reads a folder of ranks") {
  Folder folder;
  folder.add("config.json", config(2, 1));
  folder.add("pp_rank_0.json", "{" + iteration("1") + ", " + iteration("2") + "}");
  folder.add("pp_rank_1.json", "{" + iteration("1") + ", " + iteration("2") + "}");
  CHECK(sniffed("primus", {folder.path()}) == Match::kCertain);
  for (const char* other : {"op-json", "op-table", "paddle-dynamic"})
    CHECK(sniffed(other, {folder.path()}) == Match::kNo);
  const Trace trace = read_with("primus", {folder.path()});
  check_consistent(trace);
  CHECK(trace.cells.size() == 16);
  CHECK(trace.clock == ClockState::kPerRank);
  CHECK(trace.steps_laid_end_to_end);
  CHECK(trace.parts[1].stage == 1);
  CHECK(trace.cells.start_ns[0] == 500'000);
  CHECK(trace.cells.start_ns[8] == 11'000'000);  // the second iteration begins after `total`
  CHECK(trace.cells.micro_batch[1] == 1);
  CHECK(trace.diagnostics.flaw_count() == 0);
}

TEST_CASE("primus: weight gradients, chunks and micro-batches that are named") {
  Folder folder;
  folder.add("config.json", config(1, 2));
  folder.add("pp_rank_0.json",
             "{" +
                 iteration("1",
                           ", \"fwd_minibatch\": [0, 1], \"fwd_chunk\": [1, 0], \"bwd_minibatch\": [0, 1], "
                           "\"bwd_chunk\": [0, 0], \"wgrad_start\": [9], \"wgrad_end\": [10], "
                           "\"wgrad_minibatch\": [1], \"wgrad_chunk\": [0]") +
                 "}");
  const Trace trace = read_with("primus", {folder.path()});
  REQUIRE(trace.cells.size() == 5);
  CHECK(trace.cells.chunk[0] == 1);
  CHECK(trace.cells.kind[2] == CellKind::kBackward);
  CHECK(trace.cells.kind[3] == CellKind::kInputGrad);  // its weight half is separate
  CHECK(trace.cells.kind[4] == CellKind::kWeightGrad);
  CHECK(trace.diagnostics.count("primus.chunks_assigned") == 0);
}

TEST_CASE("primus: the interleaved order") {
  const auto at = [](int64_t k, bool forward) {
    const auto position = interleaved_position(k, 8, 2, 2, forward);  // p = 2, v = 2, m = 4
    return std::pair(position.chunk, position.micro_batch);
  };
  using P = std::pair<int32_t, int32_t>;
  const P forward[] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}};
  for (int k = 0; k < 8; ++k) {
    CHECK(at(k, true) == forward[k]);
    CHECK(at(k, false) == P(1 - forward[k].first, forward[k].second));
  }
  const auto last = interleaved_position(5, 6, 2, 2, true);  // m = 3: the last group has one
  CHECK(last.chunk == 1);
  CHECK(last.micro_batch == 2);
}

TEST_CASE("primus saves what can be saved") {
  struct Fault {
    std::string text;
    const char* name;
    size_t cells;
  };
  const std::string good = iteration("1");
  const Fault faults[] = {
      {"{" + good + ", " + iteration("2").substr(0, 60), "primus.truncated", 4},
      {"{" + good + ",", "primus.truncated", 4},
      {"{" + good + ", \"two\": {\"fwd_start\": [1]}}", "primus.bad_iteration", 4},
      {"{" + good + ", \"2\": {\"fwd_start\": 17}}", "primus.bad_iteration", 4},
      {"{" + good + ", \"2\": {\"fwd_start\": [1], \"fwd_start\": [2]}}", "primus.bad_iteration", 4},
      {"{" + good + ", \"2\": {\"fwd_start\": [}}", "primus.bad_iteration", 4},
      {"{" + good + ", \"2\": {\"fwd_start\":}}", "primus.bad_iteration", 4},
      {"{" + good + ", " + good + "}", "primus.repeated_iteration", 4},
      {"{" + good + ", \"2\": {\"total\": 1, \"fwd_start\": [1, 2], \"fwd_end\": [2]}}", "primus.list_lengths", 5},
      {"{" + good + ", \"2\": {\"fwd_start\": [1, 5], \"fwd_end\": [2, 4]}}", "primus.bad_time", 5},
      {"{" + good + ", \"2\": {\"fwd_start\": [NaN, 3], \"fwd_end\": [2, 4]}}", "primus.bad_time", 5},
      {"{" + good + ", \"2\": {\"fwd_start\": [1e300, 3], \"fwd_end\": [2e300, 4]}}", "primus.bad_time", 5},
      {"{" + good + ", \"2\": {\"fwd_start\": [\"1\", [3]], \"fwd_end\": [2, 4]}}", "primus.bad_time", 4},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.text);
    Folder folder;
    folder.add("config.json", config(1, 1));
    folder.add("pp_rank_0.json", fault.text);
    const Trace trace = read_with("primus", {folder.path()});
    CHECK(trace.cells.size() == fault.cells);
    CHECK(trace.diagnostics.count(fault.name) >= 1);
  }
  Folder folder;
  folder.add("pp_rank_0.json", "{" + good + "}");
  folder.add("pp_rank_1.json", "");
  const Trace trace = read_with("primus", {folder.path()});
  CHECK(trace.diagnostics.count("primus.no_config") == 1);
  CHECK(trace.diagnostics.count("primus.unusable_file") == 1);
  Folder empty;
  empty.add("pp_rank_0.json", "");
  CHECK(sniffed("primus", {empty.path()}) == Match::kNo);
  CHECK_FALSE(read_result("primus", {empty.path()}));
}

TEST_CASE("primus on the published dump") {
  const std::string path = shared_data("pipeline_ops/primus_pp8");
  if (path.empty()) return;
  CHECK(sniffed("primus", {path}) == Match::kCertain);
  const Trace trace = read_with("primus", {path});
  check_consistent(trace);
  CHECK(trace.cells.size() == 5120);
  CHECK(trace.parts.size() == 8);
  const Extent extent = extent_of(trace);
  CHECK(extent.step_count == 20);
  CHECK(extent.micro_batch_count == 16);
  CHECK(trace.diagnostics.flaw_count() == 0);
}
