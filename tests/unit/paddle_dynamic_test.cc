#include "reader_fixture.h"

using namespace stageline;

namespace {

std::string stamp(const std::string& name, char phase, int tid, int64_t ms) {
  const bool chunks = name.find("_VP") != std::string::npos;
  return "{\"name\": \"" + name + "\", \"cat\": \"" + (chunks ? "virtual " : "") + "pipeline timeline\", \"ph\": \"" +
         phase + "\", \"pid\": 0, \"tid\": " + std::to_string(tid) + ", \"ts\": " + std::to_string(ms) +
         ", \"cname\": \"thread_state_running\"}\n";
}
std::string cell(const std::string& name, int tid, int64_t begin_ms, int64_t end_ms) {
  return stamp(name, 'B', tid, begin_ms) + stamp(name, 'E', tid, end_ms);
}
const std::string kLead = "profile_record_tmp_file_for_rank_";

// Returns the output of Paddle's own script: one array, a record per line.
std::string joined(std::string lines) {
  lines.pop_back();
  for (size_t at = 0; (at = lines.find("}\n", at)) != std::string::npos;) lines.replace(at, 2, "},\n");
  return "[ " + lines + " ]\n";
}

}  // namespace

TEST_CASE("paddle-dynamic reads the files of single ranks") {
  Folder folder;
  constexpr int64_t t = 1'697'793'307'213;
  for (int rank = 0; rank < 4; ++rank) {
    std::string text;
    for (int step = 0; step < 3; ++step)
      for (int mb = 0; mb < 2; ++mb) {
        const int64_t at = t + step * 100 + mb * 40;
        text += cell("F" + std::to_string(mb), rank / 2 + 1, at, at + 10) +
                cell("B" + std::to_string(mb), rank / 2 + 1, at + 20, at + 35);
      }
    folder.add(kLead + std::to_string(rank), text);
  }
  CHECK(sniffed("paddle-dynamic", {folder.path()}) == Match::kCertain);
  for (const char* other : {"op-json", "op-table", "primus"}) CHECK(sniffed(other, {folder.path()}) == Match::kNo);
  const Trace trace = read_with("paddle-dynamic", {folder.path()});
  check_consistent(trace);
  CHECK(trace.cells.size() == 48);
  REQUIRE(trace.parts.size() == 4);
  CHECK(trace.parts[3].rank == 3);
  CHECK(trace.parts[3].stage == 1);
  CHECK(trace.parts[3].dp == 1);
  CHECK(extent_of(trace).step_count == 3);
  CHECK(trace.cells.start_ns[0] == t * 1'000'000);
  CHECK(trace.cells.end_ns[0] == (t + 10) * 1'000'000);
  CHECK(trace.diagnostics.flaw_count() == 0);
}

TEST_CASE("paddle-dynamic reads chunks and the joined file") {
  Folder folder;
  const std::string rank0 = cell("F0_VP0", 1, 100, 110) + cell("F0_VP1", 1, 120, 130) + cell("F0_VP0", 1, 200, 210);
  const std::string rank1 = cell("F0_VP0", 2, 111, 119);
  const std::string rank2 = cell("F0_VP0", 2, 101, 109);  // another replica of stage 1
  const std::string path = folder.add("pipeline_profile.json", joined(rank0 + rank1 + rank2));
  CHECK(sniffed("paddle-dynamic", {path}) == Match::kCertain);
  CHECK(sniffed("op-json", {path}) == Match::kNo);
  const Trace trace = read_with("paddle-dynamic", {path});
  REQUIRE(trace.parts.size() == 3);
  CHECK(trace.parts[2].stage == 1);
  CHECK(trace.parts[2].dp == 1);
  CHECK(trace.cells.size() == 5);
  CHECK(trace.cells.chunk == std::vector<int32_t>{0, 1, 0, 0, 0});
  CHECK(trace.cells.step == std::vector<int32_t>{0, 0, 0, 0, 1});
  CHECK(trace.diagnostics.count("paddle_dynamic.ranks_inferred") == 3);
}

TEST_CASE("paddle-dynamic counts every fault and keeps the rest") {
  const std::string good = cell("F0", 1, 100, 110);
  struct Fault {
    std::string text;
    const char* name;
    size_t cells;
  };
  const Fault faults[] = {
      {good + stamp("B0", 'B', 1, 120), "paddle_dynamic.unmatched_begin", 1},
      {good + stamp("B0", 'E', 1, 120), "paddle_dynamic.unmatched_end", 1},
      {good + cell("B0", 1, 130, 120), "paddle_dynamic.bad_time", 1},
      {good + "{\"name\": \"B0\", \"cat\": \"pipeline timeline\", \"ph\": \"B\", \"tid\": 1, \"ts\": 1e99}\n",
       "paddle_dynamic.bad_time", 1},
      {good + cell("feed", 1, 120, 130), "paddle_dynamic.bad_name", 1},
      {good + cell("F99999999", 1, 120, 130), "paddle_dynamic.bad_name", 1},
      {good + "{\"name\": 7, \"cat\": \"pipeline timeline\"}\n" + cell("B0", 1, 120, 130), "paddle_dynamic.bad_record",
       2},
      {good + cell("B0", 0, 120, 130), "paddle_dynamic.bad_record", 1},
      {good + "{\"name\": \"B0\", \"cat\": \"pipel\n" + cell("B0", 1, 120, 130), "paddle_dynamic.damaged_text", 2},
      {good + "{\"name\": \"B0\", \"cat\":\n" + cell("B0", 1, 120, 130), "paddle_dynamic.damaged_text", 2},
      {good + stamp("B0", 'B', 1, 120).substr(0, 30), "paddle_dynamic.damaged_text", 1},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.text);
    Folder folder;
    const Trace trace = read_with("paddle-dynamic", {folder.add(kLead + "0", fault.text)});
    CHECK(trace.cells.size() == fault.cells);
    CHECK(trace.diagnostics.count(fault.name) >= 1);
  }
  Folder folder;
  CHECK(sniffed("paddle-dynamic", {folder.add(kLead + "0", "")}) == Match::kNo);
  CHECK_FALSE(read_result("paddle-dynamic", {folder.path()}));
  const char* const static_tool =
      "{\"traceEvents\": [{\"name\": \"forward_0\", \"cat\": \"forward\", \"ph\": \"B\", \"ts\": 1.0}]}";
  CHECK(sniffed("paddle-dynamic", {folder.add("pipeline_profile.json", static_tool)}) == Match::kNo);
}
