// Ranks, machines, several files a rank, eras, links: what the reader makes of whole files.
#include <doctest/doctest.h>

#include "base/json_members.h"
#include "kineto_fixture.h"
#include "profile/event_text.h"
#include "readers/common/rows/identity.h"

using namespace stageline;
using namespace kineto_fixture;

namespace {

std::string info(int rank, int world = 8) {
  return "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " + std::to_string(rank) +
         ", \"world_size\": " + std::to_string(world) + "},\n";
}
std::vector<int32_t> ranks_of(const Trace& trace) {
  std::vector<int32_t> out;
  for (const Part& part : trace.parts) out.push_back(part.rank);
  return out;
}
using Ranks = std::vector<int32_t>;

}  // namespace

TEST_CASE("kineto ranks: of file names") {
  using rows::rank_in_name;
  CHECK(rank_in_name("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz") == 0);
  CHECK(rank_in_name("rank12_trace.json.gz") == 12);
  CHECK(rank_in_name("trace_8_rank_1.json") == 1);
  CHECK(rank_in_name("Rank=7.json") == 7);
  CHECK(rank_in_name("1735632360-TP-3.trace.json.gz") == 3);
  CHECK(rank_in_name("ranking_rank5.json") == 5);
  for (const char* none : {"ranking.json", "host_123.1700.pt.trace.json", "1-TP-0-PP-1.trace.json", "rank.json",
                           "rank99999999999.json", "frank.json", ""})
    CHECK_MESSAGE(!rank_in_name(none), none);
}

TEST_CASE("kineto ranks: distributedInfo, then names, then workers, then order") {
  Folder folder;
  folder.add("b/rank0.json", trace(op("a", 1, 2), info(3)));
  folder.add("b/rank5.json", trace(op("a", 1, 2)));
  folder.add("b/x.json", trace(op("a", 1, 2)));
  folder.add("b/y.json", trace(op("b", 1, 2)));
  const Trace t = read_with("kineto", {folder.path()});
  CHECK(ranks_of(t) == Ranks{0, 1, 3, 5});
  CHECK(t.diagnostics.count("kineto.ranks_from_names") == 1);
  CHECK(t.diagnostics.count("kineto.ranks_by_order") == 2);
  CHECK(t.diagnostics.count("kineto.missing_ranks") == 4);
  CHECK(t.diagnostics.flaw_count() == 0);
}

TEST_CASE("kineto ranks: world sizes that do not fit are reported") {
  Folder folder;
  folder.add("r0.json", trace(op("a", 1, 2), info(0, 2)));
  folder.add("r9.json", trace(op("a", 1, 2), info(9, 4)));
  const Trace t = read_with("kineto", {folder.path()});
  CHECK(t.diagnostics.count("kineto.world_sizes_differ") == 1);
  CHECK(t.diagnostics.count("kineto.rank_beyond_world") == 1);
}

TEST_CASE("kineto ranks: processes that all believe to be rank 0") {
  Folder folder;
  for (const char* n : {"0", "1", "2"})
    folder.add(std::string("s-TP-") + n + ".trace.json", trace(op(std::string("a") + n, 1, 20), info(0)));
  const Trace t = read_with("kineto", {folder.path()});
  CHECK(ranks_of(t) == Ranks{0, 1, 2});
  CHECK(t.diagnostics.count("kineto.rank_conflict") == 3);
}

TEST_CASE("kineto files: cycles of one worker become one rank, links stay within a file") {
  Folder folder;
  const auto cycle = [](int at, const std::string& suffix, const std::string& process) {
    std::string text = trace(x("user_annotation", "ProfilerStep#" + suffix, std::to_string(at), "100") + ",\n" +
                             op("op" + suffix, at + 1, 50, 1) + ",\n" + launch(at + 5, 5, 10, ", \"External id\": 1") +
                             ",\n" + kernel("k" + suffix, at + 20, 10, 10, ", \"External id\": 1"));
    for (size_t found; (found = text.find("\"pid\": 7,")) != std::string::npos;)
      text.replace(found, 9, "\"pid\": " + process + ",");
    return text;
  };
  folder.add("host_11.1700000000001.pt.trace.json", cycle(1000, "2", "11"));
  folder.add("host_11.1700000000000.pt.trace.json", cycle(100, "1", "11"));
  folder.add("host_12.1700000000000.pt.trace.json", cycle(100, "1", "12"));
  const Trace t = read_with("kineto", {folder.path()});
  CHECK(ranks_of(t) == Ranks{0, 1});
  const Part& part = t.parts[0];
  REQUIRE(part.files.size() == 2);
  CHECK(part.files[1].first_index == 4);
  CHECK(part.slices.size() == 8);
  CHECK(part.steps.size() == 2);
  CHECK(part.later_recordings_ns == std::vector<int64_t>{1'000'000});
  CHECK(part.machine_name == "host");
  CHECK(part.machine == 0);
  CHECK(t.clock == ClockState::kShared);
  CHECK(t.diagnostics.count("kineto.files_joined") == 1);
  for (const std::string n : {"1", "2"}) {
    const uint32_t k = slice_named(t, "k" + n);
    CHECK(part.slices.parent[k] == slice_named(t, "op" + n));
    const uint32_t from = part.slices.partner[k];
    REQUIRE(from != kNoSliceIndex);
    CHECK(part.slices.start_ns[from] == part.slices.start_ns[k] - 15'000);
    const auto text = event_text(part, k);
    REQUIRE_MESSAGE(text, (text ? "" : text.error().text()));
    CHECK(text->find("\"k" + n + "\"") != std::string::npos);
  }
}

TEST_CASE("kineto files: copies count once, and overlapping files are reported") {
  Folder folder;
  folder.add("a.json", trace(op("a", 1, 20), info(0)));
  folder.add("b.json", trace(op("a", 1, 20), info(0)));
  const Trace copies = read_with("kineto", {folder.path()});
  CHECK(copies.slice_count() == 1);
  CHECK(copies.diagnostics.count("kineto.same_file_twice") == 1);
  folder.add("b.json", trace(op("b", 5, 20), info(0)));
  const Trace both = read_with("kineto", {folder.path()});
  CHECK(both.slice_count() == 2);
  CHECK(both.diagnostics.count("kineto.overlapping_files") == 1);
}

TEST_CASE("kineto files: a pattern that the shell left alone") {
  Folder folder;
  folder.add("rank0.json", trace(op("a", 1, 20)));
  folder.add("rank1.json", trace(op("a", 1, 20)));
  folder.add("other.json", trace(op("a", 1, 20)));
  CHECK(read_with("kineto", {folder.path() + "/rank*.json"}).parts.size() == 2);
  const auto none = scan_source({folder.path() + "/nothing*.json"});
  REQUIRE_FALSE(none);
  CHECK(none.error().what.find("pattern") != std::string::npos);
  folder.add("[odd].json", trace(op("a", 1, 20)));
  CHECK(read_with("kineto", {folder.path() + "/[odd].json"}).parts.size() == 1);
}

TEST_CASE("kineto times: the base moves slices, instants, arrows and counters alike") {
  Folder folder;
  const std::string events =
      op("forward", 100, 20) + ",\n" + op("backward", 200, 20) + ",\n" +
      "{\"ph\": \"s\", \"id\": 1, \"pid\": 7, \"tid\": 7, \"ts\": 105, \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\"},\n"
      "{\"ph\": \"f\", \"id\": 1, \"pid\": 7, \"tid\": 7, \"ts\": 205, \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", "
      "\"bp\": \"e\"},\n"
      "{\"ph\": \"f\", \"id\": 9, \"pid\": 7, \"tid\": 7, \"ts\": 205, \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", "
      "\"bp\": \"e\"},\n"
      "{\"ph\": \"i\", \"name\": \"[memory]\", \"s\": \"t\", \"pid\": 7, \"tid\": 7, \"ts\": 110, \"args\": {\"Addr\": "
      "5, "
      "\"Bytes\": -512, \"Total Allocated\": 7, \"Device Type\": 1, \"Device Id\": 0}},\n"
      "{\"ph\": \"C\", \"name\": \"sm\", \"pid\": \"GPU 0 Counters\", \"ts\": 111, \"args\": {\"\": 0.5}}";
  const Trace t =
      read_with("kineto", {folder.add("t.json", trace(events, "  \"baseTimeNanoseconds\": 1727743122000000000,\n"))});
  const Part& part = t.parts[0];
  constexpr int64_t kBase = 1727743122000000000;
  CHECK(part.base_time_ns == kBase);
  CHECK(part.slices.start_ns[slice_named(t, "forward")] == kBase + 100'000);
  REQUIRE(part.slice_links.size() == 1);  // the arrow without a start is left out
  CHECK(part.slice_links[0].from == slice_named(t, "forward"));
  CHECK(part.slice_links[0].to == slice_named(t, "backward"));
  CHECK(part.slice_links[0].kind == SliceLinkKind::kForwardBackward);
  REQUIRE(part.memory.size() == 1);
  CHECK(part.memory[0].time_ns == kBase + 110'000);
  CHECK(part.memory[0].bytes == -512);
  REQUIRE(part.counters.size() == 1);
  CHECK(part.counters[0].time_ns[0] == kBase + 111'000);
  CHECK(part.counters[0].value[0] == 0.5);
  const Trace far = read_with(
      "kineto", {folder.add("far.json", trace(op("a", 1, 2), "  \"baseTimeNanoseconds\": 9100000000000000000,\n"))});
  CHECK(far.diagnostics.count("kineto.bad_base_time") == 1);
  CHECK(far.parts[0].base_time_ns == 0);
}

TEST_CASE("kineto: the torch versions that may have written a trace") {
  Folder folder;
  const auto era = [&](const std::string& events, const std::string& members) {
    const Trace t = read_with("kineto", {folder.add("t.json", trace(events, members))});
    return torch_era(t, t.parts[0]);
  };
  const std::string base = "  \"baseTimeNanoseconds\": 1727743122000000000,\n";
  const std::string base2026 = "  \"baseTimeNanoseconds\": 1767225600000000000,\n";
  CHECK(era(x("Operator", "a", "1623143089861000", "2"), "") == "1.8–1.11");
  CHECK(era(x("cpu_op", "a", "1683564901540885", "2"), "") == "1.12–2.2");
  CHECK(era(x("cpu_op", "a", "1711964646123456.789", "2"), "") == "2.3");
  CHECK(era(x("cpu_op", "a", "4203669603069.091", "2"), base) == "2.4–2.6");
  CHECK(era(x("cpu_op", "a", "12.091", "2"), base + "  \"cuda_driver_version\": 12090,\n") == "2.7–2.10");
  CHECK(era(x("cpu_op", "a", "12.091", "2"), base2026 + "  \"host_name\": \"h\",\n") == "2.11+");
  const Trace chrome = read_with(
      "kineto", {folder.add("c.json", "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}]")});
  CHECK(torch_era(chrome, chrome.parts[0]).empty());
  CHECK(chrome.description == "1 rank, 1 events");
}

TEST_CASE("kineto links: the two meanings of External id, and graphs of many kernels") {
  Folder folder;
  SUBCASE("a real link") {
    const Trace t =
        read_with("kineto", {folder.add("t.json", trace(op("inner", 10, 5, 42) + ",\n" + op("outer", 20, 50, 43) +
                                                        ",\n" + launch(25, 5, 7, ", \"External id\": 42") + ",\n" +
                                                        kernel("k", 40, 10, 7, ", \"External id\": 42")))});
    const Slices& s = t.parts[0].slices;
    CHECK(s.parent[slice_named(t, "k")] == slice_named(t, "inner"));
    CHECK(s.partner[slice_named(t, "k")] == slice_named(t, "cudaLaunchKernel"));
    CHECK(s.partner[slice_named(t, "cudaLaunchKernel")] == slice_named(t, "k"));
  }
  SUBCASE("torch 1.13 to 2.2: the correlation once more") {
    const Trace t =
        read_with("kineto", {folder.add("t.json", trace(op("wrong", 10, 5, 7) + ",\n" + op("outer", 20, 50, 43) +
                                                        ",\n" + launch(25, 5, 7, ", \"External id\": 7") + ",\n" +
                                                        kernel("k", 40, 10, 7, ", \"External id\": 7")))});
    CHECK(t.parts[0].slices.parent[slice_named(t, "k")] == slice_named(t, "outer"));
  }
  SUBCASE("one launch, many kernels") {
    std::string events = op("replay", 10, 100) + ",\n" + launch(20, 5, 9);
    for (int i = 0; i < 50; ++i) events += ",\n" + kernel("g" + std::to_string(i), 200 + 10 * i, 5, 9);
    const Trace t = read_with("kineto", {folder.add("t.json", trace(events))});
    const Slices& s = t.parts[0].slices;
    for (int i = 0; i < 50; ++i) {
      const uint32_t k = slice_named(t, "g" + std::to_string(i));
      CHECK(s.partner[k] == slice_named(t, "cudaLaunchKernel"));
      CHECK(s.parent[k] == slice_named(t, "replay"));
    }
    CHECK(s.partner[slice_named(t, "cudaLaunchKernel")] == slice_named(t, "g49"));
  }
}

TEST_CASE("kineto categories of other devices") {
  Folder folder;
  struct Case {
    const char *cat, *name;
    Category kind;
  };
  std::string events;
  const Case cases[] = {{"cuda_runtime", "hipLaunchKernel", Category::kRuntime},
                        {"xpu_runtime", "urEnqueueKernelLaunch", Category::kRuntime},
                        {"mtia_runtime", "runFunction", Category::kRuntime},
                        {"privateuse1_runtime", "launch", Category::kRuntime},
                        {"privateuse1_driver", "drv", Category::kDriver},
                        {"mtia_ccp_events", "ccp", Category::kMtiaWork},
                        {"Kernel", "old kernel", Category::kKernel},
                        {"Memcpy", "Memcpy HtoD", Category::kMemcpy},
                        {"gpu_memset", "Memset (Device)", Category::kMemset},
                        {"gpu_user_annotation", "step", Category::kGpuAnnotation},
                        {"cuda_sync", "Stream Sync", Category::kDeviceSync},
                        {"overhead", "Buffer Flush", Category::kOverhead},
                        {"something_new", "new", Category::kOther}};
  int at = 0;
  for (const Case& c : cases) events += x(c.cat, c.name, std::to_string(++at * 10), "5") + ",\n";
  const Trace t = read_with("kineto", {folder.add("t.json", trace(events))});
  for (const Case& c : cases)
    CHECK_MESSAGE(t.categories[t.parts[0].slices.category_id[slice_named(t, c.name)]].kind == c.kind, c.cat);
}

TEST_CASE("kineto phases: B and E, b and e, n, i, M, and those left without their other half") {
  Folder folder;
  const auto e = [](const char* ph, const char* name, int ts, const char* more = "") {
    return std::string("{\"ph\": \"") + ph + "\", \"name\": \"" + name +
           "\", \"cat\": \"c\", \"pid\": 1, \"tid\": 2, \"ts\": " + std::to_string(ts) + more + "}";
  };
  const std::string text =
      "[" + e("B", "outer", 10) + "," + e("B", "inner", 20) + "," + e("E", "inner", 30) + "," + e("E", "outer", 40) +
      "," + e("b", "async", 15, ", \"id\": \"0x1\"") + "," + e("n", "async", 16, ", \"id\": \"0x1\"") + "," +
      e("e", "async", 18, ", \"id\": \"0x1\"") + "," + e("E", "nobody", 50) + "," + e("B", "open", 60) + "," +
      e("i", "mark", 61, ", \"s\": \"g\"") + "," +
      "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 1, \"tid\": 2, \"args\": {\"name\": \"loader\"}}]";
  const Trace t = read_with("kineto", {folder.add("t.json", text)});
  const Slices& s = t.parts[0].slices;
  CHECK(s.size() == 3);
  CHECK(s.dur_ns[slice_named(t, "outer")] == 30'000);
  CHECK(s.parent[slice_named(t, "inner")] == slice_named(t, "outer"));
  CHECK(s.is_joined(slice_named(t, "inner")));
  CHECK(s.dur_ns[slice_named(t, "async")] == 3'000);
  CHECK(t.parts[0].lanes[0].name == "loader");
  CHECK(t.parts[0].marks.size() == 2);
  CHECK(t.diagnostics.count("kineto.unmatched_end") == 1);
  CHECK(t.diagnostics.count("kineto.unmatched_begin") == 1);
}

TEST_CASE("kineto collectives: lists of ranks are kept as written, also where Kineto cut them") {
  Folder folder;
  const std::string list =
      "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, "
      "27, 28, 29, ...]";
  const Trace t = read_with(
      "kineto",
      {folder.add("t.json", trace(kernel("ncclDevKernel_AllReduce", 1, 2, 1,
                                         ", \"Collective name\": \"allreduce\", \"dtype\": \"BFloat16\", \"In msg "
                                         "nelems\": 1024, \"Out msg nelems\": 1024, \"Group size\": 64, \"Process "
                                         "Group Ranks\": \"" +
                                             list + "\"")))});
  REQUIRE(t.parts[0].collectives.size() == 1);
  const CollectiveFact& fact = t.parts[0].collectives[0];
  CHECK(t.names.text(fact.group_ranks) == list);
  CHECK(fact.group_size == 64);
  CHECK(fact.bytes == 2048);
}

TEST_CASE("kineto facts of operators, kernels, modules and owners, in every rank's own order") {
  const std::string shapes =
      R"("External id": 1, "Input Dims": [[5, 128], [], [[2],[3]]], "Input type": ["float", "int", "TensorList"],)"
      R"( "Concrete Inputs": ["", "[1, 1]", ""])";
  const std::string events =
      x("cpu_op", "aten::conv2d", "10", "50", shapes) + ",\n" +
      x("cpu_op", "aten::relu", "70", "9",
        R"("External id": 2, "Input Dims": [], "Call stack": "a.py(1): f;b.py(2): g")") +
      ",\n" + x("cpu_op", "aten::conv2d", "100", "50", R"("External id": 3, "Input Dims": [[5, 128], [], [[2],[3]]])") +
      ",\n" + launch(20, 5, 8, R"(, "External id": 3)") + ",\n" + launch(110, 5, 9, R"(, "External id": 3)") + ",\n" +
      kernel(
          "k", 30, 5, 8,
          R"(, "External id": 1, "blocks per SM": 23.703703, "warps per SM": "inf", "grid": [512, 1, 1],)"
          R"( "block": [128, 1, 1], "registers per thread": 40, "shared memory": 2048, "est. achieved occupancy %": 75)") +
      ",\n" + kernel("k", 120, 5, 9, R"(, "External id": 3, "grid": [512, 1, 1])") + ",\n" +
      x("python_function", "nn.Module: Linear_3", "5", "200",
        R"("Python id": 1, "Python parent id": null, "Python module id": 3)") +
      ",\n  {\"ph\": \"i\", \"s\": \"t\", \"name\": \"[OutOfMemory]\", \"pid\": 7, \"tid\": 7, \"ts\": 11,"
      " \"args\": {\"Device Type\": 1, \"Bytes\": 64}}";
  Folder folder;
  folder.add("rank0.json", trace(op("other", 1, 2)));  // other ids for the same texts
  folder.add("rank1.json", trace(events));
  const Trace t = read_with("kineto", {folder.path()});
  REQUIRE(t.parts.size() == 2);
  const Part& part = t.parts[1];
  const auto text = [&](StringId id) { return std::string(t.names.text(id)); };
  REQUIRE(part.inputs.size() == 3);
  CHECK(text(part.inputs[0].dims) == "[[5, 128], [], [[2],[3]]]");
  CHECK(text(part.inputs[0].types) == R"(["float", "int", "TensorList"])");
  CHECK(text(part.inputs[0].concrete) == R"(["", "[1, 1]", ""])");
  CHECK(text(part.inputs[1].dims) == "[]");
  CHECK(part.inputs[2].dims == part.inputs[0].dims);
  REQUIRE(part.stacks.size() == 1);
  CHECK(text(part.stacks[0].stack) == "a.py(1): f;b.py(2): g");
  REQUIRE(part.kernels.size() == 2);
  CHECK(part.kernels[0].blocks_per_sm == doctest::Approx(23.703703));
  CHECK(part.kernels[0].warps_per_sm == -1);
  CHECK(part.kernels[0].occupancy_percent == 75);
  CHECK(part.kernels[0].registers == 40);
  CHECK(part.kernels[0].shared_bytes == 2048);
  CHECK(text(part.kernels[0].grid) == "[512, 1, 1]");
  CHECK(part.kernels[1].blocks_per_sm == -1);
  CHECK(part.kernels[1].grid == part.kernels[0].grid);
  REQUIRE(part.modules.size() == 1);
  CHECK(part.modules[0].module_id == 3);
  REQUIRE(part.launch_owners.size() == 1);  // launched within the first operator, said to be the third one's
  CHECK(part.slices.start_ns[part.launch_owners[0].slice] == 20'000);
  CHECK(part.slices.start_ns[part.launch_owners[0].owner] == 100'000);
  CHECK(part.memory.empty());
  REQUIRE(part.marks.size() == 1);
  CHECK(text(part.marks[0].name) == "[OutOfMemory]");
}

TEST_CASE("json members: walks what is there, whole or cut") {
  const auto members = json_members("{\"a\": 1, \"b\": {\"c\": [1, 2]}, , \"d\": \"x,}\", \"e\": , \"f\": [3");
  REQUIRE(members.size() == 4);
  CHECK(members[1].value == "{\"c\": [1, 2]}");
  CHECK(members[2].value == "\"x,}\"");
  CHECK_FALSE(members[3].whole);
  CHECK(json_member("{\"r\": 1, \"r\": 2}", "r") == "2");
  CHECK(json_integer("\" 12 \"") == 12);
  CHECK(json_text("\"a\\\"b\"") == "a\"b");
  CHECK(json_members("[1, 2, 3]").size() == 3);
  CHECK(json_members("nothing").empty());
}

TEST_CASE("kineto: files of several ranks that lie days apart are perhaps several runs") {
  Folder folder;
  const auto file = [](const std::string& rank, const std::string& ts) {
    return R"({"schemaVersion": 1, "distributedInfo": {"rank": )" + rank +
           R"(}, "traceEvents": [{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":)" + ts + R"(,"dur":1}]})";
  };
  const std::string first = folder.add("a.json", file("0", "1700000000000000"));
  const std::string near = folder.add("b.json", file("1", "1700000100000000"));
  const std::string far = folder.add("c.json", file("1", "1700734400000000"));  // 8.5 days later
  CHECK(read_with("kineto", {first, near}).diagnostics.count("kineto.far_apart") == 0);
  const Trace t = read_with("kineto", {first, far});
  REQUIRE(t.diagnostics.count("kineto.far_apart") == 1);
  for (const Diagnostic& d : t.diagnostics.items()) {
    if (d.name != "kineto.far_apart") continue;
    CHECK(d.severity == Severity::kWarning);
    CHECK(d.first.file == far);
    CHECK(d.message.en.find("8.5\u202fdays after the end of " + first) != std::string::npos);
  }
}
