#include "reader_fixture.h"
#include "readers/common/op_names.h"
#include "shared_data.h"

using namespace stageline;

namespace {

// One operation as StragglerAnalysis writes it: dp = pid, tid = rank·5 + lane.
std::string straggler(const char* name, int rank, int lane, int dp, double ts, double dur, int mb, int seq,
                      int step = 7, int chunk = 0) {
  return "{\"name\":\"" + std::string(name) + "\",\"cat\":\"x\",\"pid\":" + std::to_string(dp) +
         ",\"tid\":" + std::to_string(rank * 5 + lane) + ",\"ts\":" + std::to_string(ts) +
         ",\"dur\":" + std::to_string(dur) + ",\"ph\":\"X\",\"args\":{\"step\":" + std::to_string(step) +
         ",\"model_chunk\":" + std::to_string(chunk) + ",\"mb_id\":" + std::to_string(mb) +
         ",\"seq_id\":" + std::to_string(seq) + "}}";
}
std::string thread_name(int dp, int rank, int stage) {
  return "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":" + std::to_string(dp) +
         ",\"tid\":" + std::to_string(rank * 5) + ",\"args\":{\"name\":\"PP rank " + std::to_string(stage) +
         ", TP rank 0, compute\"}}";
}
const std::string kF = straggler("forward-compute", 0, 0, 0, 10, 5, 0, 0);
const std::string kB = straggler("backward-compute", 0, 0, 0, 20, 7, 0, 0);

// Returns a generic event with explicit arguments.
std::string event(const std::string& fields, const std::string& args) {
  return "{\"ph\":\"X\",\"name\":\"forward\",\"pid\":0,\"tid\":0," + fields + ",\"args\":{" + args + "}}";
}
const std::string kGood = event("\"ts\":1,\"dur\":2", "\"step\":0,\"rank\":0,\"stage\":0,\"micro_batch\":0");

}  // namespace

TEST_CASE("op names and cell labels") {
  CHECK(kind_of_op("forward-compute") == CellKind::kForward);
  CHECK(kind_of_op("Backward_Weight_Compute") == CellKind::kWeightGrad);
  CHECK(kind_of_op("grads-reduce-scatter-nonoverlapping") == CellKind::kCollective);
  CHECK(kind_of_op("optimizer-clip-main-grad") == CellKind::kOptimizer);
  CHECK(kind_of_op("F&B") == CellKind::kForwardBackward);
  CHECK(kind_of_op("forward-send-backward-recv") == CellKind::kOther);
  CHECK(!kind_of_op("aten::mm"));
  CHECK(!kind_of_op(""));
  CHECK(parse_cell_label("F3")->micro_batch == 3);
  CHECK(parse_cell_label("B1.c2")->chunk == 2);
  CHECK(parse_cell_label("F12_VP1")->chunk == 1);
  CHECK(parse_cell_label("F&B2")->kind == CellKind::kForwardBackward);
  for (const char* bad : {"F", "3", "F3x", "F3_VP", "X1", "F99999999999", "F3.c-1", "FF3"})
    CHECK_MESSAGE(!parse_cell_label(bad), bad);
}

TEST_CASE("op-json reads StragglerAnalysis timelines in both forms") {
  Folder folder;
  const std::string list = kF + "," + kB + "," + straggler("forward-send", 0, 1, 0, 15, 1, -1, 0, 7, -1) + "," +
                           straggler("gc", 0, 0, 0, 30, 1, 0, 0) + "," +
                           straggler("optimizer", 0, 0, 0, 31.0005, 1, -1, 0) + "," + thread_name(0, 0, 3);
  for (const std::string& text :
       {"[" + list + "]", "{\"a\":[1,{\"b\":\"}]\"}],\"traceEvents\":[" + list + "],\"z\":{}}"}) {
    const std::string path = folder.add("t.json", text);
    CHECK(sniffed("op-json", {path}) == Match::kCertain);
    const Trace trace = read_with("op-json", {path});
    check_consistent(trace);
    REQUIRE(trace.cells.size() == 5);
    REQUIRE(trace.parts.size() == 1);
    CHECK(trace.parts[0].stage == 3);
    CHECK(trace.parts[0].dp == 0);
    CHECK(trace.cells.start_ns[0] == 10'000);
    CHECK(trace.cells.end_ns[0] == 15'000);
    CHECK(trace.cells.kind[1] == CellKind::kSendForward);
    CHECK(trace.cells.micro_batch[1] == 0);  // one forward, one send, in order
    CHECK(trace.cells.start_ns[4] == 31'000'500 / 1000);
    CHECK(trace.diagnostics.flaw_count() == 0);
  }
}

TEST_CASE("op-json keeps what a damaged file still holds") {
  Folder folder;
  const auto read = [&](const std::string& text) { return read_with("op-json", {folder.add("t.json", text)}); };
  SUBCASE("cut inside an event") {
    const Trace trace = read("[" + kF + "," + kB + "," + kF.substr(0, 60));
    CHECK(trace.cells.size() == 2);
    CHECK(trace.diagnostics.count("op_json.truncated") == 1);
  }
  SUBCASE("array not closed") {
    const Trace trace = read("[" + kF + "," + kB);
    CHECK(trace.cells.size() == 2);
    CHECK(trace.diagnostics.count("op_json.truncated") == 1);
    CHECK(trace.diagnostics.count("op_json.stages_inferred") == 1);
  }
  SUBCASE("a quote lost") {
    std::string broken = kB;
    broken.erase(broken.find("\"cat\"") + 4, 1);
    const Trace trace =
        read("[" + kF + "," + broken + "," + straggler("forward-compute", 0, 0, 0, 40, 5, 1, 1) + "," + kB + "]");
    CHECK(trace.cells.size() == 3);
    CHECK(trace.diagnostics.flaw_count() > 0);
  }
  SUBCASE("a brace lost") {
    std::string broken = kB;
    broken.pop_back();
    const Trace trace = read("[" + kF + "," + broken + "," + straggler("forward-compute", 0, 0, 0, 40, 5, 1, 1) + "]");
    CHECK(trace.cells.size() == 2);
    CHECK(trace.diagnostics.flaw_count() > 0);
  }
  SUBCASE("an event that is no JSON") {
    const Trace trace = read("[" + kF + ",{\"ph\" \"X\"}," + kB + "]");
    CHECK(trace.cells.size() == 2);
    CHECK(trace.diagnostics.count("op_json.bad_event") == 1);
    CHECK(trace.diagnostics.items()[0].first.byte == static_cast<int64_t>(kF.size()) + 2);
  }
  SUBCASE("values that are not there") {
    const Trace trace =
        read("[" + kF + ",{\"ph\":\"X\",\"ts\":},{\"ph\":\"X\",\"args\":{\"step\":}},{\"ph\":}," + kB + "]");
    CHECK(trace.cells.size() == 2);
    CHECK(trace.diagnostics.flaw_count() > 0);
  }
  SUBCASE("elements that are no objects") {
    const Trace trace = read("[" + kF + ",17,null," + kB + "]");
    CHECK(trace.cells.size() == 2);
    CHECK(trace.diagnostics.count("op_json.damaged_text") == 2);
  }
  SUBCASE("deep nesting") {
    const std::string deep = "{\"ph\":\"X\",\"deep\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
    CHECK(read("[" + kF + "," + deep + "," + kB + "]").cells.size() == 2);
    CHECK(read("[" + kF + "," + kB + ",{\"a\":" + std::string(100'000, '{')).cells.size() == 2);
  }
  SUBCASE("an event larger than the limit") {
    const std::string huge = "{\"ph\":\"X\",\"name\":\"" + std::string(5 << 20, 'x') + "\"}";
    const Trace trace = read("[" + kF + "," + huge + "," + kB + "]");
    CHECK(trace.cells.size() == 2);
    CHECK(trace.diagnostics.count("op_json.damaged_text") > 0);
  }
}

TEST_CASE("op-json counts every kind of bad event and leaves it out") {
  struct Fault {
    const char *fields, *args, *name;
  };
  const Fault faults[] = {
      {"\"ts\":1,\"dur\":-2000", "\"step\":0,\"rank\":0", "op_json.bad_time"},
      {"\"ts\":1", "\"step\":0,\"rank\":0", "op_json.bad_time"},
      {"\"dur\":1", "\"step\":0,\"rank\":0", "op_json.bad_time"},
      {"\"ts\":null,\"dur\":1", "\"step\":0,\"rank\":0", "op_json.bad_time"},
      {"\"ts\":NaN,\"dur\":1", "\"step\":0,\"rank\":0", "op_json.bad_field"},
      {"\"ts\":\"nan\",\"dur\":1", "\"step\":0,\"rank\":0", "op_json.bad_time"},
      {"\"ts\":1e300,\"dur\":1", "\"step\":0,\"rank\":0", "op_json.bad_time"},
      {"\"ts\":3999999999999999,\"dur\":9000000000000000", "\"step\":0,\"rank\":0", "op_json.bad_time"},
      {"\"ts\":[1],\"dur\":1", "\"step\":0,\"rank\":0", "op_json.bad_field"},
      {"\"ts\":1,\"ts\":2,\"dur\":1", "\"step\":0,\"rank\":0", "op_json.duplicate_key"},
      {"\"ts\":1,\"dur\":1", "\"step\":0,\"step\":1,\"rank\":0", "op_json.duplicate_key"},
      {"\"ts\":1,\"dur\":1", "\"step\":0,\"rank\":true", "op_json.bad_field"},
      {"\"ts\":1,\"dur\":1", "\"step\":0,\"rank\":-7", "op_json.bad_field"},
      {"\"ts\":1,\"dur\":1", "\"step\":0,\"rank\":99999999999", "op_json.bad_field"},
      {"\"ts\":1,\"dur\":1", "\"step\":0,\"micro_batch\":1.5", "op_json.bad_field"},
      {"\"ts\":1,\"dur\":1", "\"step\":{\"a\":1}", "op_json.bad_field"},
  };
  Folder folder;
  for (const Fault& fault : faults) {
    CAPTURE(fault.fields);
    CAPTURE(fault.args);
    const Trace trace =
        read_with("op-json", {folder.add("t.json", "[" + kGood + "," + event(fault.fields, fault.args) + "]")});
    CHECK(trace.cells.size() == 1);
    CHECK(trace.diagnostics.count(fault.name) == 1);
    CHECK(trace.diagnostics.items()[0].first.byte == static_cast<int64_t>(kGood.size()) + 2);
  }
}

TEST_CASE("op-json: numbers in texts, tiny negative durations, labels, our own export") {
  Folder folder;
  const Trace trace = read_with(
      "op-json",
      {folder.add("t.json",
                  "[" + event("\"ts\":\"1697793307213760.986\",\"dur\":\"1.5\"", "\"step\":\"4\",\"rank\":0") + "," +
                      "{\"ph\":\"X\",\"name\":\"B3.c1 (8.05 ms)\",\"pid\":1,\"tid\":1,\"ts\":1697793307213790,"
                      "\"dur\":-0.5,\"args\":{\"kind\":\"B\",\"step\":4,\"stage\":0,\"rank\":0}}," +
                      "{\"ph\":\"X\",\"name\":\"step 4 (9 ms)\",\"cat\":\"step\",\"pid\":9,\"tid\":1,\"ts\":1,"
                      "\"dur\":1,\"args\":{\"step\":4}}]")});
  check_consistent(trace);
  REQUIRE(trace.cells.size() == 2);
  CHECK(trace.cells.start_ns[0] == 1697793307213760986);
  CHECK(trace.cells.end_ns[0] - trace.cells.start_ns[0] == 1500);
  CHECK(trace.cells.micro_batch[1] == 3);
  CHECK(trace.cells.chunk[1] == 1);
  CHECK(trace.slice_name(trace.cells.at(1)) == "B3.c1");
  CHECK(trace.diagnostics.count("op_json.negative_duration") == 1);
  CHECK(trace.diagnostics.count("op_json.step_slices") == 1);
}

TEST_CASE("op-json pairs B and E events and counts those left alone") {
  const auto begin = [](const char* name, int ts) {
    return "{\"ph\":\"B\",\"name\":\"" + std::string(name) + "\",\"pid\":1,\"tid\":0,\"ts\":" + std::to_string(ts) +
           ",\"args\":{\"iteration\":0}}";
  };
  const auto end = [](const char* name, int ts, int mb) {
    return "{\"ph\":\"E\",\"name\":\"" + std::string(name) + "\",\"pid\":1,\"tid\":0,\"ts\":" + std::to_string(ts) +
           ",\"args\":{\"iteration\":0,\"microbatch\":" + std::to_string(mb) + ",\"model_chunk\":1,\"pp_rank\":1}}";
  };
  Folder folder;
  const std::string path = folder.add(
      "t.json", "[" + end("forward", 1, 0) + "," + begin("forward", 2) + "," + begin("backward", 3) + "," +
                    end("forward", 4, 2) + "," + begin("backward", 5) + "," + end("backward", 9, 3) + "," +
                    begin("forward", 10) + ",{\"ph\":\"i\",\"name\":\"iteration end\",\"pid\":1,\"tid\":0,\"ts\":11}]");
  CHECK(sniffed("op-json", {path}) == Match::kCertain);
  const Trace trace = read_with("op-json", {path});
  REQUIRE(trace.cells.size() == 2);
  CHECK(trace.cells.micro_batch == std::vector<int32_t>{2, 3});
  CHECK(trace.cells.chunk == std::vector<int32_t>{1, 1});
  CHECK(trace.parts[0].stage == 1);
  CHECK(trace.diagnostics.count("op_json.unmatched_end") == 1);
  CHECK(trace.diagnostics.count("op_json.unmatched_begin") == 2);
  CHECK(trace.diagnostics.count("op_json.other_events") == 1);
}

TEST_CASE("op-json numbers the micro-batches of ndtimeline") {
  Folder folder;
  const auto nd = [](const char* name, int lane, int ts) {
    return "{\"ph\":\"X\",\"name\":\"" + std::string(name) + "\",\"pid\":2,\"tid\":" + std::to_string(30 + lane) +
           ",\"ts\":" + std::to_string(ts) + ",\"dur\":2,\"args\":{\"rank\":3,\"step\":5,\"tp\":0,\"pp\":1}}";
  };
  const std::string path = folder.add(
      "trace_step5_5", "[" + nd("forward-compute", 0, 10) + "," + nd("forward-compute", 0, 20) + "," +
                           nd("forward-recv", 1, 18) + "," + nd("forward-recv", 1, 8) + "," +
                           nd("backward-compute", 0, 30) + "," + nd("tp-allreduce", 4, 31) +
                           ",{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":2,\"tid\":31,\"args\":{\"name\":\"rank[3] "
                           "pp ->\"}}]");
  CHECK(sniffed("op-json", {path}) == Match::kCertain);
  const Trace trace = read_with("op-json", {path});
  REQUIRE(trace.cells.size() == 6);
  CHECK(trace.parts[0].rank == 3);
  CHECK(trace.parts[0].stage == 1);
  CHECK(trace.parts[0].dp == 2);
  CHECK(trace.parts[0].lanes[1].name == "pp ->");
  CHECK(trace.cells.micro_batch == std::vector<int32_t>{0, 0, 1, 1, 0, kUnknown});
  CHECK(trace.diagnostics.count("op_json.micro_batches_numbered") == 3);
}

TEST_CASE("op-json merges files of single ranks and names conflicts") {
  Folder folder;
  const auto one = [](int stage, const std::string& rank) {
    return "[" +
           event("\"ts\":1,\"dur\":2", rank + "\"step\":0,\"stage\":" + std::to_string(stage) + ",\"micro_batch\":0") +
           "]";
  };
  SUBCASE("ranks by stage") {
    folder.add("a.json", one(0, ""));
    folder.add("b.json", one(1, ""));
    const Trace trace = read_with("op-json", {folder.path()});
    CHECK(trace.parts.size() == 2);
    CHECK(trace.diagnostics.count("op_json.conflicting_ranks") == 0);
  }
  SUBCASE("one number for two stages") {
    folder.add("a.json", one(0, "\"rank\":0,"));
    folder.add("b.json", one(1, "\"rank\":0,"));
    const Trace trace = read_with("op-json", {folder.path()});
    CHECK(trace.parts.size() == 2);
    CHECK(trace.diagnostics.count("op_json.conflicting_ranks") == 1);
  }
  SUBCASE("one number and one stage twice") {
    folder.add("a.json", one(0, "\"rank\":0,"));
    folder.add("b.json", one(0, "\"rank\":0,"));
    const Trace trace = read_with("op-json", {folder.path()});
    CHECK(trace.parts.size() == 1);
    CHECK(trace.diagnostics.count("op_json.duplicate_cells") == 1);
  }
  SUBCASE("ranks only in the file names") {
    const std::string text = "[" + event("\"ts\":1,\"dur\":2", "\"step\":0,\"micro_batch\":0") + "]";
    folder.add("rank_2.json", text);
    folder.add("rank_5.json", text);
    const Trace trace = read_with("op-json", {folder.path()});
    REQUIRE(trace.parts.size() == 2);
    CHECK(trace.parts[1].rank == 5);
  }
}

TEST_CASE("op-json leaves other inputs alone") {
  Folder folder;
  const char* const kineto =
      "{\"schemaVersion\": 1, \"deviceProperties\": [], \"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", "
      "\"name\": "
      "\"aten::mm\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 2, \"args\": {\"External id\": 1, \"rank\": 0}}]}";
  const char* const paddle =
      "{\"traceEvents\": [{\"name\": \"forward_0\", \"cat\": \"forward\", \"ph\": \"B\", \"ts\": 1.0, "
      "\"pid\": 0, \"tid\": \"GPU0\", \"cname\": \"x\"}]}";
  const char* const dynamic =
      "[ {\"name\": \"F0\", \"cat\": \"pipeline timeline\", \"ph\": \"B\", \"pid\": 0, \"tid\": 1, \"ts\": 1} ]";
  // Arguments that could be a pipeline's, on kernels that are none of its operations.
  const char* const kernels =
      "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"combine_28\", \"pid\": 0, "
      "\"tid\": 1, \"ts\": 1, \"dur\": 2, \"args\": {\"mb\": 35, \"stage\": 0, \"seq\": 1}}]}";
  for (const char* text :
       {"", "[]", "{}", "[", "I0 worker log line", "a,b,c\n1,2,3\n", kineto, paddle, dynamic, kernels}) {
    const std::string path = folder.add("t.json", text);
    CHECK_MESSAGE(sniffed("op-json", {path}) == Match::kNo, text);
    const auto result = read_result("op-json", {path});
    CHECK_FALSE(result);
  }
  CHECK(sniffed("op-table", {folder.add("k.json", kineto)}) == Match::kNo);
  CHECK(sniffed("primus", {folder.path()}) == Match::kNo);
  CHECK(sniffed("paddle-dynamic", {folder.add("k.json", kineto)}) == Match::kNo);
}

TEST_CASE("op-json on the published traces") {
  struct Case {
    const char* path;
    size_t cells, parts;
    int steps;
  };
  for (const Case& c : {Case{"pipeline_ops/bytedance/timeline-ST.json.gz", 6784, 8, 32},
                        Case{"pipeline_ops/bytedance/timeline-SE.json.gz", 112320, 64, 45},
                        Case{"pipeline_ops/megatronapp/dpp-aggregated.json.gz", 5120, 4, 20}}) {
    const std::string path = shared_data(c.path);
    if (path.empty()) continue;
    CHECK(sniffed("op-json", {path}) == Match::kCertain);
    const Trace trace = read_with("op-json", {path});
    check_consistent(trace);
    CHECK(trace.cells.size() == c.cells);
    CHECK(trace.parts.size() == c.parts);
    CHECK(extent_of(trace).step_count == c.steps);
    CHECK(count_kind(trace, CellKind::kForward) == count_kind(trace, CellKind::kBackward));
    int64_t unnamed = 0;
    for (size_t i = 0; i < trace.cells.size(); ++i)
      unnamed += (is_compute(trace.cells.kind[i]) || is_message(trace.cells.kind[i])) && trace.cells.micro_batch[i] < 0;
    CHECK(unnamed == 0);
  }
}
