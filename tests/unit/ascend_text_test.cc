#include <sqlite3.h>

#include <cmath>
#include <limits>

#include "model/message_names.h"
#include "reader_fixture.h"
#include "readers/ascend/text_communication.h"
#include "readers/ascend/text_trace.h"
#include "shared_data.h"

using namespace stageline;
using namespace stageline::ascend;

TEST_CASE("ascend text: columns of kernel_details.csv by name, times to the nanosecond") {
  const Folder folder;
  Diagnostics notes;
  const std::string path = folder.add("kernel_details.csv",
                                      "\xef\xbb\xbf"
                                      "Duration(us),Name,Accelerator Core,Stream ID,\"Start Time(us)\",Input Shapes\r\n"
                                      "1.5,\"a,b\",AI_CORE,7,1718180918996865.001\t,\"\"\"4096,1;8\"\"\"\r\n"
                                      "0,hcom_send__377_0_1,HCCL,N/A,1718180918996865.2505\t,N/A\r\n"
                                      "2,torn,AI_CORE,7,17181809189\r\n"
                                      "2,\"quoted,AI_CORE,7,1718180918996866,N/A\r\n"
                                      "-2,negative,AI_CORE,7,1718180918996866,N/A\r\n"
                                      "2,no time,AI_CORE,7,N/A,N/A\r\n"
                                      "9223372036854775807,too long,AI_CORE,7,1718180918996866,N/A\r\n"
                                      "3,last,AI_CPU,8,1718180918996867,N/A");
  const Result<KernelTable> table = read_kernel_details(path, notes, nullptr);
  REQUIRE(table);
  REQUIRE(table->rows.size() == 3);
  const KernelRow& first = table->rows[0];
  CHECK(first.start_ns == 1718180918996865001);
  CHECK(first.dur_ns == 1500);
  CHECK(table->texts.text(first.name) == "a,b");
  CHECK(table->texts.text(first.shapes) == "\"4096,1;8\"");
  CHECK(first.stream == 7);
  CHECK(first.step == -1);
  CHECK_FALSE(first.communication);
  CHECK(table->rows[1].start_ns == 1718180918996865250);  // half to even
  CHECK(table->rows[1].communication);
  CHECK(table->rows[1].stream == -1);
  CHECK(table->texts.text(table->rows[2].name) == "last");
  CHECK(table->lost == 5);
  CHECK(notes.items()[0].first.line == 4);
}

TEST_CASE("ascend text: impossible sizes are taken as unknown") {
  CHECK(usable_bytes(0) == 0);
  CHECK(usable_bytes(1e18) == 1e18);
  for (const double bytes : {-1.0, 1e19, std::numeric_limits<double>::infinity(), std::nan("")})
    CHECK(usable_bytes(bytes) == -1);
  const Folder folder;
  Diagnostics notes;
  CommunicationSums sums;
  const std::string size = R"j({"Transit Size(MB)": 1e302, "Transit Time(ms)": 1})j";
  const std::string times = R"j("Communication Time Info": {"Elapse Time(ms)": 1})j";
  const std::string path =
      folder.add("communication.json", R"({"step1": {"p2p": {"hcom_send__1_0_1@1": {)" + times +
                                           R"(, "Communication Bandwidth Info": {"SDMA": )" + size + "}}}}}");
  REQUIRE(read_communication(path, sums, notes));
  REQUIRE(sums.ops.size() == 1);
  CHECK(sums.ops[0].bytes == -1);
  const std::string matrix = R"({"step1": {"p2p": {"send@1": {"0-1": )" + size + "}}}}";
  REQUIRE(read_communication_matrix(folder.add("communication_matrix.json", matrix), sums, notes));
  CHECK(sums.links.empty());
}

TEST_CASE("ascend text: a table that lacks a column names it") {
  const Folder folder;
  Diagnostics notes;
  const Result<KernelTable> table =
      read_kernel_details(folder.add("kernel_details.csv", "Name,Duration(us)\na,1\n"), notes, nullptr);
  REQUIRE_FALSE(table);
  CHECK(table.error().what == "no column \"Start Time(us)\"");
  CHECK_FALSE(read_kernel_details(folder.add("empty.csv", ""), notes, nullptr));
  CHECK_FALSE(read_kernel_details(folder.path() + "/absent.csv", notes, nullptr));
}

TEST_CASE("ascend text: names of operations and numbers of groups") {
  const auto name = parse_operation_name("hcom_allReduce__377_4_1");
  REQUIRE(name);
  CHECK(name->kind == "allReduce");
  CHECK(name->digits == "377");
  CHECK(name->seq == 4);
  for (const char* other :
       {"", "hcom_", "hcom_send", "hcom___1_2_3", "hcom_send__x", "hcom_send__1_x_1", "allReduce__1_2"})
    CHECK_FALSE(parse_operation_name(other));
  // These are adjacent in a real profile.
  CHECK(hccl_group_digits("90.91.105.46%enp189s0f0_60000_0_1736410538306028") == "17148521525495523210");
  CHECK(hccl_group_digits("") == "0");
}

TEST_CASE("ascend text: links become global by the group's members, or by a rank's link with itself") {
  const std::string number = hccl_group_digits("group_a");
  const std::vector<MetaField> metadata =
      metadata_of(R"({"parallel_group_info": "{\"group_a\": {\"group_name\": \"pp\", \"global_ranks\": [1, 5]}}"})");
  const ProcessGroups groups(metadata);
  REQUIRE(groups.all().size() == 1);
  CHECK(groups.find(number) == groups.find("group_a"));
  CHECK(groups.find_by_digits(number.substr(number.size() - 3)) != nullptr);
  CHECK(groups.find_by_digits("000") == nullptr);
  const auto link = [](std::string group, int32_t from, int32_t to) {
    LinkSummary out;
    out.group = std::move(group);
    out.src_rank = from;
    out.dst_rank = to;
    return out;
  };
  std::vector<LinkSummary> links = {link(number, 0, 1),  link(number, 1, 9),  link("same", 5, 5), link("same", 5, 2),
                                    link("other", 3, 3), link("other", 3, 4), link("alone", 0, 1)};
  CHECK(make_links_global(groups, 5, links) == 4);
  CHECK(links[0].src_rank == 1);
  CHECK(links[0].dst_rank == 5);
  CHECK(links[0].group == "group_a");
  CHECK(links[1].dst_rank == -1);  // no such member
  CHECK(links[3].dst_rank == 2);
  CHECK(links[5].src_rank == 5);  // its own number there is 3
  CHECK(links[5].dst_rank == -1);
  CHECK(links[6].src_rank == -1);
}

TEST_CASE("ascend text: communication.json, whole and cut anywhere") {
  const std::string text =
      R"json({"step13": {"p2p": {"hcom_send__377_0_1@G": {"Communication Time Info": {
      "Start Timestamp(us)": 1718180918996865.25, "Elapse Time(ms)": 1.5, "Transit Time(ms)": 0.5, "Wait Time(ms)": 1.0},
      "Communication Bandwidth Info": {"SDMA": {"Transit Size(MB)": 8.388608}, "HCCS": {"Transit Size(MB)": 8.388608},
      "RDMA": {"Transit Size(MB)": 0}}}}, "collective": {"hcom_allReduce__377_0_1@G": {"Communication Time Info": {
      "Start Timestamp(us)": 1718180918996868, "Elapse Time(ms)": 2}},
      "Total Op Info": {"Communication Time Info": {"Elapse Time(ms)": 3}}}}, "step": {}})json";
  const Folder folder;
  Diagnostics notes;
  CommunicationSums sums;
  REQUIRE(read_communication(folder.add("communication.json", text), sums, notes));
  REQUIRE(sums.ops.size() == 2);
  CHECK(sums.ops[0].start_ns == 1718180918996865250);
  CHECK(sums.ops[0].dur_ns == 1'500'000);
  CHECK(sums.ops[0].wait_ns == 1'000'000);
  CHECK(sums.ops[0].bytes == doctest::Approx(8388608));
  CHECK(sums.ops[0].transport == "SDMA");
  CHECK(sums.ops[0].step == 13);
  CHECK(sums.ops[1].type == "collective");
  CHECK(notes.items().empty());
  for (size_t cut = 0; cut + 1 < text.size(); cut += 3) {
    CommunicationSums some;
    Diagnostics said;
    const Status status = read_communication(folder.add("cut.json", text.substr(0, cut)), some, said);
    CHECK((!status || said.count("ascend.cut_json") == 1));
    CHECK(some.ops.size() <= 2);
    for (const CommunicationRow& op : some.ops) CHECK((op.dur_ns == 1'500'000 || op.dur_ns == 2'000'000));
  }
}

TEST_CASE("ascend text: an operation of the matrix counts once on a link, and so does the total") {
  const std::string link =
      R"json({"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 2, "Transit Time(ms)": 0.5)json";
  const Folder folder;
  Diagnostics notes;
  CommunicationSums sums;
  const std::string text = "{\"step2\": {\"collective\": {\"allreduce-top1@G\": " + link + ", \"Op Name\": \"x\"}}," +
                           "\"allreduce-middle@G\": " + link + ", \"Op Name\": \"x\"}}," +
                           "\"allreduce-total@G\": " + link + "}, \"0-x\": {}, \"7\": {}}}}}";
  REQUIRE(read_communication_matrix(folder.add("communication_matrix.json", text), sums, notes));
  REQUIRE(sums.links.size() == 2);
  CHECK(sums.links[0].op == "x");
  CHECK(sums.links[1].op == "allreduce-total");
  CHECK(sums.links[1].bytes == 2e6);
  CHECK(sums.links[1].transit_ns == 500'000);
  CHECK(notes.count("ascend.link") == 2);
}

TEST_CASE("ascend text: trace_view.json with times as texts, names behind the events, arrows") {
  const Folder folder;
  Diagnostics notes;
  const std::string path = folder.add("trace_view.json", R"([
{"ph":"X","name":"aten::mm","pid":1,"tid":1,"ts":"1718180918996865.1230","dur":5,"cat":"cpu_op","args":{"Sequence number":4,"Fwd thread id":0}},
{"ph":"X","name":"Node@launch","pid":2,"tid":1,"ts":"1718180918996866\t","dur":"1.5","args":{"connection_id":9}},
{"ph":"X","name":"MatMul","pid":3,"tid":2,"ts":1718180918996870.5,"dur":10.25,"args":{"Task Type":"AI_CORE","Stream Id":2}},
{"ph":"X","name":"Computing","pid":4,"tid":0,"ts":"1718180918996870.5","dur":10.25},
{"ph":"X","name":"no time","pid":3,"tid":2,"dur":1},
{"ph":"s","cat":"HostToDevice","id":"1","pid":2,"tid":1,"ts":"1718180918996866"},
{"ph":"f","cat":"HostToDevice","id":"1","pid":3,"tid":2,"ts":"1718180918996870.5"},
{"ph":"s","cat":"async_npu","id":1,"pid":1,"tid":1,"ts":"1718180918996865.123"},
{"ph":"f","cat":"async_npu","id":1,"pid":3,"tid":2,"ts":"1718180918996870.5"},
{"ph":"f","cat":"async_npu","id":2,"pid":3,"tid":2,"ts":"1718180918996870.5"},
{"ph":"M","name":"process_name","pid":1,"args":{"name":"Python"}},
{"ph":"M","name":"process_name","pid":2,"args":{"name":"CANN"}},
{"ph":"M","name":"process_name","pid":3,"args":{"name":"Ascend Hardware"}},
{"ph":"M","name":"process_name","pid":4,"args":{"name":"Overlap Analysis"}}
])");
  const Result<TextTrace> trace = read_trace_view(path, notes, nullptr);
  REQUIRE(trace);
  REQUIRE(trace->rows.size() == 3);
  CHECK(trace->rows[0].start_ns == 1718180918996865123);
  CHECK(trace->rows[1].dur_ns == 1500);
  CHECK(trace->rows[1].connection == 9);
  CHECK(trace->rows[2].start_ns == 1718180918996870500);
  CHECK(trace->rows[2].launch == 1);
  CHECK(trace->rows[2].owner == 0);
  CHECK(trace->rows[2].stream == 2);
  CHECK(trace->threads[trace->rows[2].thread].kind == ThreadKind::kStream);
  REQUIRE(trace->operators.size() == 1);
  CHECK(trace->operators[0].sequence_number == 4);
  CHECK(notes.count("ascend.trace_event") == 1);
  CHECK(notes.count("ascend.trace_flow") == 1);
  CHECK(notes.count("ascend.trace_cut") == 0);
}

TEST_CASE("ascend text: step_trace_time.csv") {
  const Folder folder;
  Diagnostics notes;
  const std::string path = folder.add("step_trace_time.csv",
                                      "Device_id,Step,Computing,Communication(Not Overlapped),Free,Bubble\n"
                                      "0,13,1000.5,20,3,0\n0,14,7\n0,15,x,1,1,1\n");
  const auto steps = read_step_trace_time(path, notes);
  REQUIRE(steps);
  REQUIRE(steps->size() == 1);
  CHECK((*steps)[0].step == 13);
  CHECK((*steps)[0].computing_ns == 1'000'500);
  CHECK((*steps)[0].bubble_ns == 0);
  CHECK((*steps)[0].stage_ns == -1);
  CHECK(notes.count("ascend.step_line") == 2);
  CHECK_FALSE(read_step_trace_time(folder.add("other.csv", "a,b\n1,2\n"), notes));
}

TEST_CASE("ascend text: a real analysis.db, row by row") {
  const std::string path = shared_data("ascend/msinsight_db/level1/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/analysis.db");
  if (path.empty()) return;
  Diagnostics notes;
  const Result<AnalysisSums> sums = read_analysis_db(path, -1, notes);
  REQUIRE(sums);
  CHECK(sums->rows == 1 + 12 + 48 + 4);
  REQUIRE(sums->steps.size() == 1);
  CHECK(sums->steps[0].step == 50);
  CHECK(sums->steps[0].computing_ns == 8'903'431);
  REQUIRE(sums->communication.ops.size() == 4);
  CHECK(sums->communication.ops[0].start_ns == 1736410576431645200);
  CHECK(sums->communication.ops[0].dur_ns == 88'750'993);
  CHECK(sums->communication.ops[0].bytes == doctest::Approx(28647232));
  CHECK(sums->communication.ops[0].transport == "SDMA");
  CHECK(sums->communication.links.size() < 48);  // top, middle and bottom name some operations twice
  CHECK(notes.items().empty());
}
