// The analyses of clusters on traces made in memory, so that every fact is the test's own.
#include <algorithm>

#include "diagnosis/profile/transfer_findings.h"
#include "model/message_names.h"
#include "server/page/answer_json.h"
#include "torch_traces.h"

using namespace stageline;

namespace {

struct Event {
  const char* name;
  const char* category;  // kernel, memcpy, transfer, range, device range, call, sync, op
  int64_t start_us, dur_us;
  int lane = 0;
  int launched_by = -1;  // index of the call
};

constexpr std::pair<const char*, Category> kCategories[] = {{"kernel", Category::kKernel},
                                                            {"comm", Category::kKernel},
                                                            {"memcpy", Category::kMemcpy},
                                                            {"transfer", Category::kCollective},
                                                            {"range", Category::kUserAnnotation},
                                                            {"device range", Category::kGpuAnnotation},
                                                            {"call", Category::kRuntime},
                                                            {"sync", Category::kDeviceSync},
                                                            {"op", Category::kCpuOp}};

// One part per rank; every event is slice i of its rank, for lanes are given in order of events and starts.
struct Maker {
  Trace trace;

  Maker() {
    trace.format = "ascend";
    trace.device_family = DeviceFamily::kNpu;
    trace.numbers_messages_per_rank = true;
    for (const auto& [text, kind] : kCategories) trace.categories.push_back({text, kind});
  }
  StringId id(const char* text) { return trace.names.intern(text); }
  Part& rank(const std::vector<Event>& events) {
    Part part;
    part.rank = static_cast<int32_t>(trace.parts.size());
    part.event_count = static_cast<int64_t>(events.size());
    Slices& s = part.slices;
    for (size_t i = 0; i < events.size(); ++i) {
      const Event& e = events[i];
      s.start_ns.push_back(e.start_us * 1000);
      s.dur_ns.push_back(e.dur_us * 1000);
      s.name_id.push_back(id(e.name));
      s.file_index.push_back(static_cast<uint32_t>(i));
      s.parent.push_back(kNoSliceIndex);
      s.correlation.push_back(kNoCorrelation);
      s.partner.push_back(e.launched_by < 0 ? kNoSliceIndex : static_cast<uint32_t>(e.launched_by));
      s.args_offset_low.push_back(0);
      s.args_offset_high.push_back(0);
      s.stream_id.push_back(0);
      s.step.push_back(0);
      uint8_t category = 0;
      while (std::string_view(kCategories[category].first) != e.category) ++category;
      s.category_id.push_back(category);
      const std::string_view what = e.category;
      s.kernel_class.push_back(static_cast<uint8_t>(what == "kernel"   ? KernelClass::kComputation
                                                    : what == "comm"   ? KernelClass::kCommunication
                                                    : what == "memcpy" ? KernelClass::kMemory
                                                                       : KernelClass::kNone));
      if (part.lanes.empty() || e.lane != static_cast<int>(part.lanes.size()) - 1) {
        const bool host = what == "call" || what == "op" || what == "range";
        part.lanes.push_back(
            {"lane", i, i, host ? LaneKind::kHostThread : LaneKind::kDeviceStream, "0", std::to_string(e.lane)});
      }
      part.lanes.back().end = i + 1;
    }
    trace.parts.push_back(std::move(part));
    return trace.parts.back();
  }
  void collective(Part& part, uint32_t slice, const char* name, int64_t number) {
    CollectiveFact fact;
    fact.slice = slice;
    fact.name = id(name);
    fact.group = id("group");
    fact.seq = number;
    part.collectives.push_back(fact);
  }
  void transfer(Part& part, uint32_t slice, uint32_t op, const char* task, int plane, int src, int dst, int64_t bytes) {
    TransferFact fact;
    fact.slice = slice;
    fact.op = op;
    fact.task = id(task);
    fact.transport = id("SDMA");
    fact.link = id("HCCS");
    fact.bytes = bytes;
    fact.plane = plane;
    fact.src_rank = src;
    fact.dst_rank = dst;
    part.transfers.push_back(fact);
  }
};

// Three collectives of ranks with these durations (us), all ending together.
Trace collectives(const std::vector<int64_t>& durations) {
  Maker maker;
  for (const int64_t dur : durations) {
    std::vector<Event> events = {{"launch", "call", 0, 1, 0}};
    for (int i = 0; i < 3; ++i)
      events.push_back({i == 0   ? "hcom_allReduce__1_0_1"
                        : i == 1 ? "hcom_allReduce__1_1_1"
                                 : "hcom_allReduce__1_2_1",
                        "comm", 1000 * (i + 1) - dur, dur, 1, 0});
    Part& part = maker.rank(events);
    for (uint32_t i = 0; i < 3; ++i) maker.collective(part, i + 1, "allReduce", i);
  }
  return std::move(maker.trace);
}

}  // namespace

TEST_CASE("slow-rank: the rank with the shortest duration came last, and the others' loss is computed") {
  const Trace trace = collectives({100, 101, 10, 103});
  const auto tables = ask(trace, "slow-rank");
  const Table& ranks = table_of(tables, "slow-ranks");
  CHECK(cell(ranks, "vote_count", "rank", "2") == "3");
  CHECK(cell(ranks, "lost_ns", "rank", "2") == "822000");  // 3 × (90 + 91 + 93)
  CHECK(cell(ranks, "vote_count", "rank", "0") == "0");
  CHECK(cell(ranks, "wait_ns", "rank", "3") == "279000");
  CHECK(cell(table_of(tables, "slow-rank-groups"), "worst_rank") == "2");
  CHECK(cell(table_of(tables, "late-collectives"), "late_ns") == "90000");
  const auto theirs = ask(trace, "slow-rank", {.msprof = true});
  CHECK(cell(theirs[0], "slowAffectCount", "rankId", "2") == "3");  // Dixon: 90/93 > 0.92
  CHECK(cell(theirs[1], "MinNs") == "10");                          // microseconds, whatever the name says
}

TEST_CASE("slow-rank: groups of two ranks vote here, but not in msprof's mode") {
  const Trace trace = collectives({100, 10});
  CHECK(cell(ask(trace, "slow-rank")[0], "vote_count", "rank", "1") == "3");
  CHECK(ask(trace, "slow-rank", {.msprof = true})[0].row_count() == 0);
  CHECK(cell(ask(collectives({15, 10}), "slow-rank")[0], "vote_count", "rank", "1") == "0");  // 5 us are not late
  CHECK(cell(ask(collectives({15, 10}), "slow-rank", {.options = {{"late", "5"}}})[0], "vote_count", "rank", "1") ==
        "3");
}

TEST_CASE("slow-rank: a hundred ranks by Dixon, more by three deviations") {
  std::vector<int64_t> durations;
  for (int i = 0; i < 120; ++i) durations.push_back(500 + i % 7);
  durations[17] = 100;
  CHECK(cell(ask(collectives(durations), "slow-rank", {.msprof = true})[0], "slowAffectCount", "rankId", "17") == "3");
  durations.resize(40);
  CHECK(cell(ask(collectives(durations), "slow-rank", {.msprof = true})[0], "slowAffectCount", "rankId", "17") == "3");
}

TEST_CASE("communication-time-sum: waits of all planes count; msprof takes one plane") {
  Maker maker;
  Part& part = maker.rank({{"hcom_allReduce__1_0_1", "comm", 0, 100, 0},
                           {"Notify_Wait", "transfer", 0, 10, 1},
                           {"Memcpy", "transfer", 10, 20, 1},
                           {"Notify_Wait", "transfer", 0, 80, 2},
                           {"Memcpy", "transfer", 80, 15, 2}});
  maker.collective(part, 0, "allReduce", 0);
  maker.transfer(part, 1, 0, "Notify_Wait", 1, 0, 1, 0);
  maker.transfer(part, 2, 0, "Memcpy", 1, 0, 1, 1000);
  maker.transfer(part, 3, 0, "Notify_Wait", 2, 0, 2, 0);
  maker.transfer(part, 4, 0, "Memcpy", 2, 0, 2, 1000);
  const auto ours = ask(maker.trace, "communication-time-sum");
  const Table& sums = table_of(ours, "communication-time-sum");
  CHECK(cell(sums, "elapse_ns") == "100000");
  CHECK(cell(sums, "transit_ns") == "35000");
  CHECK(cell(sums, "wait_ns") == "60000");  // 80 − 20 under the first plane's copy
  CHECK(cell(sums, "synchronization_ns") == "10000");
  CHECK(cell(sums, "idle_ns") == "5000");
  const auto theirs = ask(maker.trace, "communication-time-sum", {.msprof = true});
  CHECK(cell(theirs[0], "transit_ns") == "20000");
  CHECK(cell(theirs[0], "wait_ns") == "10000");
  CHECK(cell(theirs[0], "idle_ns") == "70000");
  const auto matrix = ask(maker.trace, "communication-matrix");
  CHECK(cell(table_of(matrix, "links"), "gb_per_s", "dst_rank", "1") == "0.05");
  CHECK(table_of(matrix, "links").row_count() == 2);
}

TEST_CASE("communication-time-sum: without tasks, beyond the shortest of all ranks is waiting") {
  const auto tables = ask(collectives({100, 40}), "communication-time-sum");
  CHECK(cell(tables[0], "wait_ns", "rank", "0") == "180000");
  CHECK(cell(tables[0], "transit_ns", "rank", "0") == "120000");
  CHECK(cell(tables[0], "basis", "rank", "0") == "other ranks");
}

TEST_CASE("slow-link: a row is the source, a column the destination, a cell the link") {
  const auto readings = [](auto&& slow) {
    Maker maker;
    for (int src = 0; src < 4; ++src) {
      std::vector<Event> events = {{"hcom_allReduce__1_0_1", "comm", 0, 1000, 0}};
      for (int i = 0; i < 3; ++i)
        events.push_back({"Memcpy", "transfer", 100 * i, slow(src, i < src ? i : i + 1) ? 40 : 10, 1});
      Part& part = maker.rank(events);
      for (int i = 0; i < 3; ++i)
        maker.transfer(part, static_cast<uint32_t>(i + 1), 0, "Memcpy", 0, src, i < src ? i : i + 1, 1 << 20);
    }
    const auto tables = ask(maker.trace, "slow-link");
    const Table& links = table_of(tables, "slow-links");
    std::string out;
    for (size_t row = 0; row < links.row_count(); ++row)
      out += links.raw_text(row, 2) + links.raw_text(row, 3) + " " +
             links.raw_text(row, static_cast<size_t>(links.column_index("reading"))) + ";";
    return out;
  };
  CHECK(readings([](int, int) { return false; }).empty());
  CHECK(readings([](int src, int) { return src == 2; }) == "20 source;21 source;23 source;");
  CHECK(readings([](int, int dst) { return dst == 1; }) == "01 destination;21 destination;31 destination;");
  CHECK(readings([](int src, int dst) { return src == 0 && dst == 3; }) == "03 link;");
}

TEST_CASE("slow-link: transfers slow rarely, or on all links at once, have waited; a bad link is always slow") {
  // Four ranks, each to the three others, in each of eight collectives.
  const auto slow_links = [](auto&& slow) {
    Maker maker;
    for (int src = 0; src < 4; ++src) {
      std::vector<Event> events;
      for (int call = 0; call < 8; ++call) events.push_back({"hcom_allReduce__1_0_1", "comm", 1000 * call, 900, 0});
      for (int call = 0; call < 8; ++call)
        for (int i = 0; i < 3; ++i)
          events.push_back(
              {"Memcpy", "transfer", 1000 * call + 300 * i, slow(call, src, i < src ? i : i + 1) ? 200 : 10, 1});
      Part& part = maker.rank(events);
      for (uint32_t call = 0; call < 8; ++call) maker.collective(part, call, "allReduce", call);
      for (uint32_t call = 0; call < 8; ++call)
        for (int i = 0; i < 3; ++i)
          maker.transfer(part, 8 + 3 * call + static_cast<uint32_t>(i), call, "Memcpy", 0, src, i < src ? i : i + 1,
                         1 << 20);
    }
    return table_of(ask(maker.trace, "slow-link"), "slow-links").row_count();
  };
  CHECK(slow_links([](int, int src, int dst) { return src == 1 && dst == 2; }) == 1);
  CHECK(slow_links([](int call, int src, int dst) { return call < 4 && src == 1 && dst == 2; }) == 0);
  CHECK(slow_links([](int call, int, int) { return call == 3; }) == 0);
  // The rest of a call that was slow everywhere still counts: six of seven are slow.
  CHECK(slow_links([](int call, int src, int dst) { return call == 3 || (call != 5 && src == 1 && dst == 2); }) == 1);
}

TEST_CASE("communication-matrix: a message whose copies name one rank, told once though both ends have it") {
  Maker maker;
  for (int rank = 0; rank < 2; ++rank) {
    Part& part = maker.rank({{rank == 0 ? "hcom_send__377_0_1" : "hcom_receive__377_0_1", "comm", 0, 100, 0},
                             {"Memcpy", "transfer", 90, 10, 1}});
    maker.collective(part, 0, rank == 0 ? "send" : "receive", 0);
    part.collectives[0].src_rank = 0;
    part.collectives[0].dst_rank = 1;
    maker.transfer(part, 1, 0, "Memcpy", 0, rank, -1, 1000);
  }
  const Table links = ask(maker.trace, "communication-matrix")[0];
  REQUIRE(links.row_count() == 1);
  CHECK(cell(links, "transfer_count") == "1");
  CHECK(cell(links, "bytes", "src_rank", "0") == "1000");
  CHECK(cell(links, "transit_ns") == "10000");
  maker.trace.parts.erase(maker.trace.parts.begin());  // the sender's profile is missing: the receiver reports it
  CHECK(cell(ask(maker.trace, "communication-matrix")[0], "transfer_count", "src_rank", "0") == "1");
}

TEST_CASE("communication-matrix: the time of messages without tasks holds waiting and gives no rate") {
  Maker maker;
  Part& part = maker.rank({{"hcom_send__377_0_1", "comm", 0, 100, 0}});
  maker.collective(part, 0, "send", 0);
  part.collectives[0].src_rank = 0;
  part.collectives[0].dst_rank = 1;
  part.collectives[0].bytes = 1000;
  const Table links = ask(maker.trace, "communication-matrix")[0];
  CHECK(cell(links, "transit_ns") == "100000");
  CHECK(cell(links, "gb_per_s") == "");
}

TEST_CASE(
    "cluster-time-summary: no waiting by durations where members of the group are missing; by tasks where there") {
  const auto wait = [](int64_t group_size, bool tasks) {
    Maker maker;
    for (int rank = 0; rank < 2; ++rank) {
      Part& part = maker.rank({{"hcom_allReduce__1_0_1", "comm", 0, rank == 0 ? 100 : 40, 0},
                               {"Notify_Wait", "transfer", 0, 25, 1},
                               {"Memcpy", "transfer", 25, 5, 1}});
      maker.collective(part, 0, "allReduce", 0);
      part.collectives[0].group_size = group_size;
      if (!tasks) continue;
      maker.transfer(part, 1, 0, "Notify_Wait", 0, rank, 1 - rank, 0);
      maker.transfer(part, 2, 0, "Memcpy", 0, rank, 1 - rank, 1000);
    }
    const auto tables = ask(maker.trace, "cluster-time-summary");
    return cell(table_of(tables, "cluster-time-summary"), "communication_wait_ns", "rank", "0") + "/" +
           cell(table_of(tables, "cluster-time-summary"), "communication_transfer_ns", "rank", "0") + "/" +
           cell(table_of(tables, "cluster-time-ranks"), "communication_wait_ns", "rank", "0");
  };
  CHECK(wait(2, false) == "60000/40000/60000");
  CHECK(wait(8, false) == "//");
  CHECK(wait(8, true) == "25000/5000/25000");
}

TEST_CASE("hccl-sum: messages of one number on two ranks are two messages") {
  Maker maker;
  for (int rank = 0; rank < 2; ++rank) {
    Part& part = maker.rank(
        {{"hcom_receive__377_0_1", "comm", 0, 100 + rank, 0}, {"hcom_allReduce__377_1_1", "comm", 200, 50, 0}});
    maker.collective(part, 0, "receive", 0);
    maker.collective(part, 1, "allReduce", 1);
  }
  const auto tables = ask(maker.trace, "hccl-sum");
  CHECK(table_of(tables, "hccl-top").row_count() == 3);
  CHECK(cell(table_of(tables, "hccl-top"), "count", "name", "hcom_allReduce__377_1_1") == "2");
}

TEST_CASE("hccl-sum is offered on a page of NPUs alone") {
  Maker maker;
  maker.rank({{"ncclDevKernel_AllReduce", "comm", 0, 50, 0}});
  const auto offered = [&](DeviceFamily family, const char* name) {
    maker.trace.device_family = family;
    return is_offered(*find_analysis(name), maker.trace);
  };
  CHECK_FALSE(offered(DeviceFamily::kUnstated, "hccl-sum"));
  CHECK(offered(DeviceFamily::kUnstated, "communication-matrix"));
  CHECK(offered(DeviceFamily::kNpu, "hccl-sum"));
}

TEST_CASE("tb-distributed: HCCL's messages are not joined by their numbers, collectives are") {
  Maker maker;
  for (int rank = 0; rank < 3; ++rank) {
    Part& part = maker.rank({{"hcom_receive__377_0_1", "comm", 0, 100 + 50 * rank, 0},
                             {"hcom_allReduce__1_0_1", "comm", 300, 50 - 10 * rank, 0}});
    maker.collective(part, 0, "receive", 0);
    maker.collective(part, 1, "allReduce", 0);
  }
  const auto tables = ask(maker.trace, "tb-distributed");
  CHECK(cell(table_of(tables, "waits"), "synchronizing_ns", "rank", "0") == "20000");
  CHECK(cell(table_of(tables, "waits"), "unknown_ns", "rank", "0") == "100000");
  CHECK(cell(table_of(tables, "collectives"), "joined_count", "collective", "receive") == "0");
  CHECK(cell(table_of(tables, "collectives"), "joined_count", "collective", "allReduce") == "1");
}

TEST_CASE("analyses of clusters say why a profile of Level_none has no answer") {
  Maker maker;
  Part& part = maker.rank({{"F0", "device range", 0, 100, 0}});
  const auto reported = [&](const char* analysis) {
    AnalysisInput input;
    input.trace = &maker.trace;
    auto result = find_analysis(analysis)->run(input);
    REQUIRE(result);
    return std::any_of(result->notes.items().begin(), result->notes.items().end(),
                       [](const auto& note) { return note.name == "ascend.level_none"; });
  };
  for (const char* analysis : {"cluster-time-summary", "slow-rank", "free-analysis", "hccl-sum", "compute-op-sum"}) {
    part.metadata.clear();
    CHECK_FALSE(reported(analysis));
    part.metadata.push_back(
        {"profiler_info", R"({"config":{"experimental_config":{"_profiler_level":"Level_none"}}})"});
    CHECK_MESSAGE(reported(analysis), std::string(analysis));
  }
}

TEST_CASE("cluster-time-summary: computing, exposed communication, exposed copies and free add up") {
  Maker maker;
  Part& part = maker.rank({{"MatMul", "kernel", 0, 100, 0},
                           {"MatMul", "kernel", 200, 100, 0},
                           {"hcom_allReduce__1_0_1", "comm", 50, 100, 1},
                           {"hcom_receive__1_1_1", "comm", 320, 60, 1},
                           {"Memcpy", "memcpy", 290, 20, 2}});
  maker.collective(part, 2, "allReduce", 0);
  maker.collective(part, 3, "receive", 1);
  const auto tables = ask(maker.trace, "cluster-time-summary");
  const Table& t = table_of(tables, "cluster-time-summary");
  CHECK(cell(t, "span_ns") == "380000");
  CHECK(cell(t, "compute_ns") == "200000");
  CHECK(cell(t, "overlap_ns") == "50000");
  CHECK(cell(t, "exposed_communication_ns") == "110000");
  CHECK(cell(t, "exposed_memory_ns") == "10000");
  CHECK(cell(t, "free_ns") == "60000");  // 380 − 200 − 110 − 10
  CHECK(cell(t, "bubble_ns") == "60000");
  CHECK(cell(t, "stage_ns") == "320000");
  CHECK(cell(table_of(tables, "cluster-time-ranks"), "exposed_collective_ns") == "50000");
}

TEST_CASE("free-analysis: why a device stood still") {
  Maker maker;
  maker.rank({{"launch", "call", 0, 5, 0},
              {"launch", "call", 180, 5, 0},    // late, host busy with nothing known
              {"launch", "call", 400, 5, 0},    // late, under a data loader
              {"launch", "call", 406, 130, 0},  // slow itself
              {"launch", "call", 537, 1, 0},    // in time, and its stream waits
              {"enumerate(DataLoader)", "op", 210, 190, 1},
              {"A", "kernel", 10, 90, 2, 0},
              {"B", "kernel", 190, 20, 2, 1},
              {"C", "kernel", 410, 10, 2, 2},
              {"D", "kernel", 520, 20, 2, 3},
              {"Notify_Wait", "sync", 540, 60, 2},
              {"E", "kernel", 600, 10, 2, 4},
              {"F", "kernel", 615, 10, 2, 4}});
  const auto tables = ask(maker.trace, "free-analysis");
  const Table& reasons = table_of(tables, "free-reasons");
  CHECK(cell(reasons, "sum_ns", "cause", "launch") == "90000");
  CHECK(cell(reasons, "sum_ns", "cause", "input") == "190000");
  CHECK(cell(reasons, "sum_ns", "cause", "blocked") == "100000");
  CHECK(cell(reasons, "sum_ns", "cause", "other") == "60000");
  CHECK(cell(reasons, "sum_ns", "cause", "kernel") == "15000");
  CHECK(cell(table_of(tables, "free-time"), "free_ns") == "455000");
  CHECK(cell(table_of(tables, "free-gaps"), "after") == "C");  // the longest one ends with it
}

TEST_CASE("compute-op-sum: by the type that the profiler says") {
  Maker maker;
  Part& part = maker.rank({{"a", "kernel", 0, 10, 0}, {"b", "kernel", 20, 30, 0}, {"c", "kernel", 60, 5, 0}});
  for (uint32_t i = 0; i < 2; ++i) part.tasks.push_back({i, maker.id("MatMulV2"), maker.id("AI_CORE")});
  const auto tables = ask(maker.trace, "compute-op-sum");
  const Table& types = table_of(tables, "compute-op-types");
  CHECK(cell(types, "count", "op_type", "MatMulV2") == "2");
  CHECK(cell(types, "std_ns", "op_type", "MatMulV2") == "14142");
  CHECK(cell(types, "p25_ns", "op_type", "MatMulV2") == "15000");
  CHECK(cell(types, "sum_ns", "op_type", "") == "5000");
  const auto theirs = ask(maker.trace, "compute-op-sum", {.msprof = true});
  CHECK(cell(theirs[0], "Q1Ns", "OpType", "MatMulV2") == "15000");
}

TEST_CASE("aten-op-kernels-and-delay: a launch on another thread belongs to the operator that its kernel names") {
  Maker maker;
  Part& part =
      maker.rank({{"aten::mm", "op", 0, 100, 0}, {"launch", "call", 40, 5, 1}, {"MatMul", "kernel", 60, 30, 2, 1}});
  for (Lane& lane : part.lanes)
    if (lane.tid != "2") lane.kind = LaneKind::kHostThread;
  part.slices.parent[2] = 0;
  const auto tables = ask(maker.trace, "aten-op-kernels-and-delay");
  CHECK(cell(tables[0], "kernel_sequence", "aten_op_name", "aten::mm") == "MatMul");
  CHECK(cell(tables[0], "avg_launch_delay_ns", "aten_op_name", "aten::mm") == "40000");
}

TEST_CASE("links: sums beyond 64 bits stop at the limit, transfers without time have no rate") {
  Maker maker;
  Part& part = maker.rank({{"op", "comm", 0, 10, 0}});
  for (int i = 0; i < 20; ++i) {
    LinkSummary link;
    link.src_rank = i % 4;
    link.dst_rank = (i + 1) % 4;
    link.bytes = 4e18;
    link.transit_ns = i % 4 == 0 ? 0 : INT64_MAX / 2;
    part.link_summaries.push_back(link);
  }
  const Table links = ask(maker.trace, "communication-matrix")[0];
  CHECK(cell(links, "bytes", "src_rank", "1") == "9223372036854775807");
  CHECK(cell(links, "transit_ns", "src_rank", "1") == "9223372036854775807");
  CHECK(cell(links, "gb_per_s", "src_rank", "0") == "");
  CHECK(cell(table_of(ask(maker.trace, "slow-link"), "link-classes"), "bytes") == "9223372036854775807");
}

TEST_CASE("names of HCCL's operations hold a hash of their group") {
  CHECK(hccl_group_id("10.0.0.1%eth0_60000_1_1738895521183247") == "204");
  CHECK(hccl_type("hcom_allReduce__377_4_1") == "hcom_allReduce_");
  CHECK(hccl_type("HcclAllreduce_") == "HcclAllreduce_");
}

TEST_CASE("comm.slow_link is found from one hundredth of the span on, and names its cause") {
  const auto found = [](const char* reading, int64_t lost_ns, int32_t machines = 2) {
    Trace trace;
    for (int32_t rank = 0; rank < 4; ++rank) {
      trace.parts.emplace_back();
      trace.parts.back().rank = rank;
      trace.parts.back().machine = rank % machines;
    }
    ProfileSums sums;
    for (const int32_t to : {1, 3})
      sums.slow_links.push_back(
          {.src = 2, .dst = to, .link = "HCCS", .reading = reading, .lost_ns = lost_ns, .ratio = 2.5});
    ProfileFacts facts;
    facts.ranks.push_back({});
    facts.ranks[0].span_ns = 1000;
    std::vector<Finding> out;
    add_link_findings(trace, facts, sums, out);
    return out;
  };
  REQUIRE(found("source", 5).size() == 1);
  CHECK(found("source", 5)[0].id == "comm.slow_link");
  CHECK(found("source", 5)[0].title.en == "Rank 2 sends slowly");
  CHECK(found("source", 5)[0].weight == doctest::Approx(0.01));
  CHECK(found("source", 4).empty());  // both together are under a hundredth
  CHECK(found("destination", 10)[0].title.en == "Rank 1 receives slowly");
  CHECK(found("link", 10)[0].title.en == "The link from rank 2 to rank 1 is slow");
  CHECK(found("link", 10)[0].detail.en.find("its cable and port") != std::string::npos);
  CHECK(found("link", 10, 1)[0].detail.en.find("within the host") != std::string::npos);
}
