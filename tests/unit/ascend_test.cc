// Ascend profiler databases: what the rows of a small one become. Whole files and faults: tests/cli/ascend_test.py.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/sqlite_db.h"
#include "reader_fixture.h"
#include "readers/ascend/find_ranks.h"
#include "readers/common/number_map.h"
#include "readers/common/range_message.h"

using namespace stageline;

namespace {

constexpr const char* kProfile = R"(
CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO STRING_IDS VALUES (1, '{''name'': ''forward_step'', ''current_microbatch'': 2}'), (2, 'default'), (3, 'MsTx'),
  (4, 'hcom_send__210_7_1'), (5, 'group'), (6, 'hcom_send_'), (7, 'Notify_Record'), (8, 'SDMA'), (9, 'launch'),
  (10, 'MatMul_0'), (11, 'KERNEL_AICORE'), (12, 'aten::mm'), (13, '4,8;8'), (14, 'Enqueue'), (15, 'Dequeue@mm'),
  (16, 'EVENT_WAIT'), (17, 'aten::mm_backward');
CREATE TABLE META_DATA (name TEXT, value TEXT);
INSERT INTO META_DATA VALUES ('SCHEMA_VERSION', '1.2.0'),
  ('parallel_group_info', '{"group": {"group_name": "pp", "group_rank": 1, "global_ranks": [0, 4]}}'),
  ('pp_info', '"{\"pp_type\": \"1f1b\"}"');
CREATE TABLE ENUM_HCCL_DATA_TYPE (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO ENUM_HCCL_DATA_TYPE VALUES (11, 'BFP16');
CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER);
INSERT INTO RANK_DEVICE_MAP VALUES (4, 3);
CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER);
INSERT INTO STEP_TIME VALUES (9, 1000, 9000);
CREATE TABLE MSTX_EVENTS (startNs, endNs, eventType, message, globalTid, domainId, connectionId);
INSERT INTO MSTX_EVENTS VALUES (1100, 1200, 2, 1, 30064771079, 2, 4000000001);
CREATE TABLE TASK (startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId);
INSERT INTO TASK VALUES (5000, 6000, 3, 4000000001, 0, 3, 2), (5100, 5400, 3, 21, 1, 11, 2), (6000, 6100, 3, 22, 2, 8, 4),
  (6200, 6300, 3, 23, 3, 16, 2);
CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, blockNum, inputShapes);
INSERT INTO COMPUTE_TASK_INFO VALUES (10, 1, 24, 13);
CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, connectionId, groupName, opId, dataType, count, opType);
INSERT INTO COMMUNICATION_OP VALUES (4, 6000, 6500, 22, 5, 0, 11, 100, 6);
CREATE TABLE COMMUNICATION_TASK_INFO (globalTaskId, taskType, opId, groupName, planeId, notifyId, srcRank, dstRank, size);
INSERT INTO COMMUNICATION_TASK_INFO VALUES (2, 7, 0, 5, 0, 1, 1, 0, 200);
CREATE TABLE CANN_API (startNs, endNs, type, globalTid, connectionId, name);
INSERT INTO CANN_API VALUES (1300, 1400, 10000, 30064771080, 21, 9), (1500, 1600, 5500, 30064771080, 22, 6);
CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, globalTid, connectionId, name, sequenceNumber, fwdThreadId, inputShapes, type);
INSERT INTO PYTORCH_API VALUES ('1110', '1190', 30064771079, 1, 12, 5, 0, 13, 50001), ('1120', '1130', 30064771079, 2, 14, NULL, NULL,
  NULL, 50002), ('1290', '1410', 30064771080, 3, 15, NULL, NULL, NULL, 50002), ('1700', '1800', 30064771079, 4, 17, 5, 1, NULL, 50001);
CREATE TABLE CONNECTION_IDS (id, connectionId);
INSERT INTO CONNECTION_IDS VALUES (1, 21), (1, 70), (2, 90), (3, 90), (4, 70);
)";

Trace profile(const Folder& folder, const std::string& more = "", bool only_ranges = false) {
  const std::string path = folder.add("x_1_2_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_4.db", "");
  {
    auto db = SqliteDb::open_new(path);
    REQUIRE(db);
    const Status made = db->run(std::string(kProfile) + more);
    REQUIRE_MESSAGE(made, (made ? "" : made.error().text()));
  }
  ReadOptions options;
  options.only_ranges = only_ranges;
  auto trace = find_reader("ascend")->read(source_of({folder.path()}), options);
  REQUIRE_MESSAGE(trace, (trace ? "" : trace.error().text()));
  return std::move(*trace);
}

uint32_t slice_named(const Trace& trace, std::string_view name, Category kind) {
  const Slices& s = trace.parts[0].slices;
  for (uint32_t i = 0; i < s.size(); ++i)
    if (trace.names.text(s.name_id[i]) == name && trace.categories[s.category_id[i]].kind == kind) return i;
  FAIL("no slice " << name);
  return 0;
}

}  // namespace

TEST_CASE("ascend: rows become slices that are linked to each other") {
  const Folder folder;
  const Trace trace = profile(folder);
  REQUIRE(trace.parts.size() == 1);
  const Part& part = trace.parts[0];
  const Slices& s = part.slices;
  CHECK(trace.format == "ascend");
  CHECK(part.rank == 4);
  CHECK(part.device == 3);
  CHECK(s.size() == 13);  // a range, its device side, 3 tasks, an operation, 2 launches, 4 calls of torch, a step

  const uint32_t host = slice_named(trace, "forward_step", Category::kUserAnnotation);
  const uint32_t device = slice_named(trace, "forward_step", Category::kGpuAnnotation);
  CHECK(s.partner[host] == device);
  CHECK(s.partner[device] == host);
  CHECK(s.start_ns[device] == 5000);
  REQUIRE(part.ranges.size() == 1);
  CHECK(part.ranges[0].slice == host);
  CHECK(part.ranges[0].micro_batch == 2);
  CHECK(trace.names.text(part.ranges[0].message) == "{'name': 'forward_step', 'current_microbatch': 2}");

  REQUIRE(part.steps.size() == 1);
  CHECK(part.steps[0].number == 9);
  for (const uint32_t i : {host, device}) CHECK(s.step[i] == 1);

  const uint32_t kernel = slice_named(trace, "MatMul_0", Category::kKernel);
  const uint32_t mm = slice_named(trace, "aten::mm", Category::kCpuOp);
  CHECK(s.class_of(kernel) == KernelClass::kComputation);
  CHECK(s.partner[kernel] == slice_named(trace, "launch", Category::kRuntime));
  CHECK(s.parent[kernel] == mm);
  CHECK(s.step[kernel] == 1);
  CHECK(trace.names.text(fact_of(part.inputs, mm)->dims) == "[[4, 8], [8]]");
  CHECK(slice_named(trace, "EVENT_WAIT", Category::kDeviceSync) < s.size());

  REQUIRE(part.slice_links.size() == 2);  // the queue, and forward to backward
  const auto backward = std::find_if(part.slice_links.begin(), part.slice_links.end(),
                                     [](const SliceLink& l) { return l.kind == SliceLinkKind::kForwardBackward; });
  REQUIRE(backward != part.slice_links.end());
  CHECK(backward->from == mm);
  CHECK(backward->to == slice_named(trace, "aten::mm_backward", Category::kCpuOp));
}

TEST_CASE("ascend: a send has its peer, and a transfer has its operation") {
  const Folder folder;
  const Trace trace = profile(folder);
  const Part& part = trace.parts[0];
  const uint32_t op = slice_named(trace, "hcom_send__210_7_1", Category::kKernel);
  CHECK(part.slices.class_of(op) == KernelClass::kCommunication);
  const CollectiveFact* fact = fact_of(part.collectives, op);
  REQUIRE(fact != nullptr);
  CHECK(trace.names.text(fact->name) == "send");
  CHECK(trace.names.text(fact->group_description) == "pp");
  CHECK(trace.names.text(fact->group_ranks) == "[0, 4]");
  CHECK(fact->src_rank == 4);
  CHECK(fact->dst_rank == 0);
  CHECK(fact->seq == 7);
  CHECK(fact->bytes == 200);
  REQUIRE(part.transfers.size() == 1);
  CHECK(part.transfers[0].op == op);
  CHECK(part.transfers[0].src_rank == 4);
  CHECK(part.transfers[0].dst_rank == 0);
  CHECK(part.slices.step[part.transfers[0].slice] == 1);
}

TEST_CASE("ascend: when only the pipeline is wanted, kernels and calls are left out") {
  const Folder folder;
  const Trace trace = profile(folder, "", true);
  CHECK(trace.parts[0].slices.size() == 5);  // range, device side, operation, its launch, step
  const uint32_t op = slice_named(trace, "hcom_send__210_7_1", Category::kKernel);
  CHECK(trace.parts[0].slices.step[op] == 1);
  CHECK(fact_of(trace.parts[0].collectives, op)->dst_rank == 0);
}

TEST_CASE("ascend: metadata is JSON, a text in a text unwrapped") {
  const Folder folder;
  const Trace trace = profile(folder);
  std::string schema, pp_info;
  for (const MetaField& field : trace.parts[0].metadata) {
    if (field.key == "SCHEMA_VERSION") schema = field.json;
    if (field.key == "pp_info") pp_info = field.json;
  }
  CHECK(schema == "\"1.2.0\"");
  CHECK(pp_info == "{\"pp_type\": \"1f1b\"}");
}

TEST_CASE("ascend: messages of ranges in every form") {
  using stageline::parse_range_message;
  for (const char* text : {"{'name': 'forward_step', 'current_microbatch': 3, 'chunk': 1}",
                           R"({"name": "forward_step", "micro_batch": "3", "vp": 1})",
                           R"({\"name\": \"forward_step\", \"mb\": 3, \"model_chunk\": 1})",
                           "forward_step mb=3 chunk: 1", "forward_step, microbatch=3, chunk=1"}) {
    CAPTURE(text);
    const stageline::RangeText said = parse_range_message(text);
    CHECK(said.name == "forward_step");
    CHECK(said.micro_batch == 3);
    CHECK(said.chunk == 1);
    CHECK(said.stage == -1);
  }
  CHECK(parse_range_message("optimizer").name == "optimizer");
  CHECK(parse_range_message("WeightGradStore.pop").name == "WeightGradStore.pop");
  CHECK(parse_range_message("").name.empty());
  for (const char* broken : {"{", "{'", "{'name", "{'name':", "{\\\"", "{'name': 'x", "{{{{", "{'a': [1, 2}"}) {
    CAPTURE(broken);
    CHECK_FALSE(parse_range_message(broken).name.empty());
  }
  CHECK(parse_range_message("{'name': 'x', 'step': 99999999999}").step == -1);
}

TEST_CASE("ascend: numbers lead to rows") {
  NumberMap map;
  CHECK(map.get(5) == NumberMap::kNone);
  const int64_t keys[] = {0, 1, 15, 16, -1, -17, 4000000001, INT64_MAX, INT64_MIN, 1 << 20};
  uint32_t n = 0;
  for (const int64_t key : keys) {
    CHECK(map.put(key, n) == n);
    ++n;
  }
  CHECK(map.put(16, 77) == 3);
  for (int64_t key = 100; key < 5000; key += 7) map.put(key, 1000);
  n = 0;
  for (const int64_t key : keys) CHECK(map.get(key) == n++);
  CHECK(map.get(2) == NumberMap::kNone);
  map.replace(16, 78);
  CHECK(map.get(16) == 78);
}

TEST_CASE("ascend: ranks are found by name, content and place") {
  const Folder folder;
  folder.add("a/h_1_20250101000000000_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_1.db", "old");
  folder.add("a/h_1_20250201000000000_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_1.db", "new");
  folder.add("a/h_1_20250201000000000_ascend_pt/PROF_1/msprof_20250201000000.db", "inner");
  folder.add("b/c/d/e/f/h_2_20250101000000000_ascend_pt/profiler_info_3.json", "{}");
  folder.add("b/c/d/e/f/h_2_20250101000000000_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv", "x");
  folder.add("PROF_9/msprof_20250201000000.db", "x");
  folder.add("PROF_9/device_0/info.json.0", "{\"rank_id\": \"5\"}");
  folder.add("m/msmonitor_77_20250201000000000_8.db", "x");
  Diagnostics notes;
  const auto ranks = ascend::find_ranks(source_of({folder.path()}), notes);
  REQUIRE(ranks);
  REQUIRE(ranks->size() == 4);
  CHECK((*ranks)[0].rank == 1);
  CHECK((*ranks)[0].stamp == "20250201000000000");
  CHECK(notes.count("ascend.older_profile") == 1);
  CHECK((*ranks)[1].rank == 3);
  CHECK((*ranks)[1].profiler_db.empty());
  CHECK_FALSE((*ranks)[1].kernel_details.empty());
  CHECK((*ranks)[2].rank == 5);
  CHECK((*ranks)[3].rank == 8);
  CHECK((*ranks)[3].msmonitor);
}
