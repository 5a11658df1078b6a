// Series over time, comparisons and counters of the default mode, on traces made by hand; each case that HTA answers
// otherwise says which fault of docs/analyses it shows.
#include "analyses/analysis.h"
#include "base/parallel.h"
#include "model/numpy_order.h"
#include "profile/step_series.h"
#include "reader_fixture.h"

using namespace stageline;

namespace {

std::string event(const std::string& name, const std::string& cat, int pid, int tid, double ts, double dur,
                  const std::string& args = "") {
  return "{\"ph\":\"X\",\"name\":\"" + name + "\",\"cat\":\"" + cat + "\",\"pid\":" + std::to_string(pid) +
         ",\"tid\":" + std::to_string(tid) + ",\"ts\":" + std::to_string(ts) + ",\"dur\":" + std::to_string(dur) +
         ",\"args\":{" + args + "}}";
}
std::string launch(double ts, int correlation, const std::string& name = "cudaLaunchKernel",
                   const std::string& cat = "cuda_runtime") {
  return event(name, cat, 100, 100, ts, 1, "\"correlation\":" + std::to_string(correlation));
}
std::string on_stream(int stream, int correlation, const std::string& more = "") {
  return "\"device\":0,\"stream\":" + std::to_string(stream) + ",\"correlation\":" + std::to_string(correlation) +
         (more.empty() ? "" : "," + more);
}
std::string kernel(double ts, double dur, int stream, int correlation, const std::string& name = "gemm") {
  return event(name, "kernel", 0, stream, ts, dur, on_stream(stream, correlation));
}
std::string trace(const std::vector<std::string>& events, int rank = 0) {
  std::string out = "{\"schemaVersion\":1,\"distributedInfo\":{\"backend\":\"nccl\",\"rank\": " + std::to_string(rank) +
                    ",\"world_size\":2},\n\"traceEvents\":[\n";
  for (size_t i = 0; i < events.size(); ++i) out += (i > 0 ? ",\n" : "") + events[i];
  return out + "\n]}";
}

AnalysisResult answer(const char* name, AnalysisInput input) {
  const Analysis* analysis = find_analysis(name);
  REQUIRE(analysis != nullptr);
  auto result = analysis->run(input);
  REQUIRE_MESSAGE(result, (result ? "" : result.error().text()));
  return std::move(*result);
}
AnalysisResult answer(const char* name, const Trace& read, const AnalysisOptions& options = {}) {
  AnalysisInput input;
  input.trace = &read;
  input.options = options;
  return answer(name, input);
}
std::string cell(const Table& table, size_t row, const char* column) {
  const int at = table.column_index(column);
  REQUIRE(at >= 0);
  REQUIRE(row < table.row_count());
  return table.raw_text(row, static_cast<size_t>(at));
}
AnalysisOptions options(const std::vector<std::pair<std::string, std::string>>& values) {
  AnalysisOptions out;
  for (const auto& [name, value] : values) out.set(name, value);
  return out;
}

}  // namespace

TEST_CASE("step series: points, time, bins") {
  const StepSeries s = series_of({{10, 2}, {0, 1}, {10, -1}, {40, -2}, {20, 1}, {20, -1}});
  CHECK(s.time_ns == std::vector<int64_t>{0, 10, 20, 40});
  CHECK(s.value == std::vector<int64_t>{1, 2, 2, 0});
  const TimeStatistics t = time_statistics(s, false);
  CHECK(t.span_ns == 40);
  CHECK(t.positive_ns == 40);
  CHECK(t.mean == doctest::Approx(1.75));
  CHECK(t.p50 == 2);
  CHECK(t.max == 2);
  CHECK(time_at_least(s, 2) == 30);
  const auto bins = bins_of(s, -40, 40, 4);
  REQUIRE(bins.size() == 2);  // two empty ones left out
  CHECK(bins[0].start_ns == 0);
  CHECK(bins[0].mean == doctest::Approx(1.5));
  CHECK(bins[1].max == 2);
  CHECK(bins_of(s, 5, 5, 4).empty());
  CHECK(bins_of(s, 38, 40, 400).size() == 2);  // not more bins than nanoseconds
  CHECK(time_statistics({}, false).span_ns == 0);
}

TEST_CASE("numpy order: sorted whatever the shape, ties of short lists stay in order") {
  for (const size_t count : {0u, 1u, 2u, 16u, 17u, 1000u, 5000u})
    for (const int shape : {0, 1, 2, 3, 4}) {
      std::vector<int64_t> keys(count);
      for (size_t i = 0; i < count; ++i) {
        const auto n = static_cast<int64_t>(i);
        keys[i] = shape == 0 ? n : shape == 1 ? -n : shape == 2 ? n * 7919 % 101 : shape == 3 ? 5 : (n & 1) * 1000 - n;
      }
      std::vector<uint32_t> order = numpy_order(keys);
      for (size_t i = 1; i < count; ++i) CHECK(keys[order[i - 1]] <= keys[order[i]]);
      std::sort(order.begin(), order.end());
      for (size_t i = 0; i < count; ++i) CHECK(order[i] == i);
    }
  CHECK(numpy_order(std::vector<int64_t>{3, 1, 3, 1}) == std::vector<uint32_t>{1, 3, 0, 2});
  std::vector<uint32_t> heap = {0, 1, 2, 3, 4};
  detail::numpy_heap_sort(std::vector<int64_t>{5, 2, 9, 1, 4}, heap.data(), 5);
  CHECK(heap == std::vector<uint32_t>{3, 1, 4, 0, 2});
}

TEST_CASE("queue lengths weigh by time") {  // F28
  Folder folder;
  // One operation waits for 90 µs, then two for 10 µs.
  const Trace read = read_with(
      "kineto",
      {folder.add("t.json", trace({launch(0, 1), launch(90, 2), kernel(100, 5, 7, 1), kernel(110, 5, 7, 2)}))});
  const AnalysisResult result = answer("queue-length-summary", read);
  const Table& table = result.tables[0];
  REQUIRE(table.row_count() == 1);
  CHECK(cell(table, 0, "span_ns") == "115000");  // to the end of the last work, not to its start
  CHECK(std::stof(cell(table, 0, "time_mean")) == doctest::Approx((90 + 20 + 10) / 115.0));
  CHECK(std::stof(cell(table, 0, "in_flight_mean")) == doctest::Approx((105 + 25) / 115.0));
  CHECK(cell(table, 0, "max") == "2");
  CHECK(cell(table, 0, "change_count") == "4");
  CHECK(cell(table, 0, "change_mean") == "1");
  CHECK(cell(table, 0, "in_flight_max") == "2");
  CHECK(result.tables[1].row_count() > 0);
  const AnalysisResult series = answer("queue-length-time-series", read);
  CHECK(series.tables[0].row_count() == 4);
  CHECK(cell(series.tables[0], 1, "time_ns") == "90000");
  CHECK(cell(series.tables[0], 1, "queue_length") == "2");
}

TEST_CASE("the kernels of a graph launch wait as one launch") {  // F17
  Folder folder;
  const Trace read =
      read_with("kineto", {folder.add("t.json", trace({launch(0, 1, "cudaGraphLaunch"), kernel(10, 5, 7, 1),
                                                       kernel(20, 5, 7, 1), kernel(30, 5, 8, 1)}))});
  const AnalysisResult result = answer("queue-length-summary", read);
  REQUIRE(result.tables[0].row_count() == 2);
  CHECK(cell(result.tables[0], 0, "max") == "1");
  CHECK(cell(result.tables[0], 0, "in_flight_max") == "1");
  CHECK(cell(result.tables[0], 0, "span_ns") == "25000");
  CHECK(std::stof(cell(result.tables[0], 0, "in_flight_mean")) == doctest::Approx(1));
  CHECK(cell(result.tables[0], 1, "stream") == "8");
}

TEST_CASE("a kernel with two calls waits once; clocks that disagree are said") {  // F14
  Folder folder;
  const Trace read = read_with(
      "kineto",
      {folder.add("t.json", trace({launch(0, 1), launch(1, 1, "cuLaunchKernel", "cuda_driver"), kernel(10, 5, 7, 1),
                                   launch(50, 2), kernel(40, 5, 7, 2), kernel(60, 5, 7, 99)}))});
  const AnalysisResult result = answer("queue-length-summary", read);
  CHECK(cell(result.tables[0], 0, "max") == "1");
  CHECK(result.notes.count("queue.early_start") == 1);
  CHECK(result.notes.count("queue.no_launch") == 1);
}

TEST_CASE("every stream that was full has a row") {  // F19
  Folder folder;
  const Trace read = read_with(
      "kineto",
      {folder.add("t.json", trace({launch(0, 1), launch(0, 2), launch(1, 3), launch(1, 4), kernel(20, 5, 7, 1),
                                   kernel(25, 5, 7, 2), kernel(31, 5, 9, 3), kernel(40, 5, 9, 4)}))});
  const AnalysisResult result = answer("time-spent-blocked-on-full-queue", read, options({{"max-queue-length", "2"}}));
  REQUIRE(result.tables[0].row_count() == 2);
  CHECK(cell(result.tables[0], 0, "full_ns") == "20000");
  CHECK(cell(result.tables[0], 1, "full_ns") == "30000");
  CHECK(std::stof(cell(result.tables[0], 1, "full_share")) == doctest::Approx(30.0 / 45));
  AnalysisInput input;
  input.trace = &read;
  input.options = options({{"max-queue-length", "0"}});
  CHECK(!find_analysis("time-spent-blocked-on-full-queue")->run(input));
}

namespace {
std::string copy(double ts, double dur, int64_t bytes, const std::string& name = "Memcpy HtoD (Pinned -> Device)",
                 const std::string& cat = "gpu_memcpy") {
  return event(name, cat, 0, 7, ts, dur,
               on_stream(7, 1, "\"bytes\":" + std::to_string(bytes) + ",\"memory bandwidth (GB/s)\":0.1"));
}
}  // namespace

TEST_CASE("bandwidth returns to zero, weighs by time, and knows copies by category") {  // F9, F28, F7
  Folder folder;
  const Trace read =
      read_with("kineto", {folder.add("t.json", trace({copy(0, 3, 1000), copy(1, 7, 333), copy(20, 0, 4),
                                                       copy(30, 1, 10'000), copy(40, 2, 2000, "CopyDeviceToHost"),
                                                       copy(50, 1, 512, "Memset (Device)", "gpu_memset")}))});
  const AnalysisResult series = answer("memory-bw-time-series", read);
  const Table& points = series.tables[0];
  CHECK(cell(points, 0, "name") == "Memcpy DtoH");
  CHECK(cell(points, 1, "memory_bw_gbps") == "0");
  CHECK(cell(points, 5, "name") == "Memcpy HtoD");
  CHECK(cell(points, 5, "memory_bw_gbps") == "0");  // after two copies of 1000/3 and 333/7 B/ns
  CHECK(series.notes.count("bandwidth.no_rate") == 1);
  const AnalysisResult summary = answer("memory-bw-summary", read);
  const Table& table = summary.tables[0];
  REQUIRE(table.row_count() == 3);
  CHECK(cell(table, 1, "copy_count") == "4");
  CHECK(cell(table, 1, "size_bytes") == "11337");
  CHECK(cell(table, 1, "busy_ns") == "9000");
  CHECK(std::stof(cell(table, 1, "mean_gbps")) == doctest::Approx(11'333 / 9000.0));
  CHECK(cell(table, 1, "max_gbps") == "10");
  CHECK(cell(table, 2, "name") == "Memset");
}

namespace {
std::string collective(double ts, double dur, int seq, const std::string& name = "allreduce",
                       const std::string& kernel_name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL") {
  return event(kernel_name, "kernel", 0, 13, ts, dur,
               on_stream(13, 1000 + seq,
                         "\"Collective name\":\"" + name +
                             "\",\"In msg nelems\":8,\"Out msg nelems\":8,\"Group size\":3,\"dtype\":\"Float\","
                             "\"Process Group Name\":\"0\",\"Process Group Ranks\":\"[0, 1, 2]\",\"Seq\":" +
                             std::to_string(seq)));
}
}  // namespace

TEST_CASE("stragglers work with ncclDevKernel and trust no clock between ranks") {  // F21
  Folder folder;
  std::vector<std::string> paths;
  for (int rank = 0; rank < 3; ++rank) {
    const double off = rank * 1e6;  // clocks a second apart
    const double late = rank == 1 ? 90 : 0;
    paths.push_back(
        folder.add("rank" + std::to_string(rank) + ".json",
                   trace({collective(off + 10 + late, 100 - late, 1), collective(off + 210, rank == 2 ? 40 : 50, 2),
                          collective(off + 310, 10.0 + rank, 3, "broadcast")},
                         rank)));
  }
  const Trace read = read_with("kineto", paths);
  REQUIRE(read.parts.size() == 3);
  const AnalysisResult result = answer("potential-stragglers", read, options({{"num-candidates", "1"}}));
  const Table& ranks = result.tables[0];
  REQUIRE(ranks.row_count() == 3);
  CHECK(cell(ranks, 0, "rank") == "1");
  CHECK(cell(ranks, 0, "is_candidate") == "1");
  CHECK(cell(ranks, 0, "caused_wait_ns") == "180000");
  CHECK(cell(ranks, 1, "rank") == "2");
  CHECK(cell(ranks, 1, "is_candidate") == "0");
  CHECK(cell(ranks, 1, "caused_wait_ns") == "20000");
  CHECK(cell(ranks, 1, "wait_ns") == "90000");
  CHECK(cell(result.tables[1], 0, "worst_rank") == "1");
  CHECK(cell(result.tables[1], 0, "count") == "2");
  CHECK(result.notes.count("straggler.not_synchronising") == 3);
  AnalysisInput input;
  input.trace = &read;
  input.hta = true;
  const auto hta = find_analysis("potential-stragglers")->run(input);
  REQUIRE(!hta);
  CHECK(hta.error().what.starts_with("ValueError"));
}

namespace {
AnalysisResult diff(const Trace& control, const Trace& test, const AnalysisOptions& given = {}) {
  AnalysisInput input;
  input.control = &control;
  input.test = &test;
  input.options = given;
  return answer("trace-diff", input);
}
std::string op(const std::string& name, double ts, double dur, const std::string& cat = "cpu_op") {
  return event(name, cat, 100, 100, ts, dur);
}
size_t row_of(const Table& table, const std::string& name) {
  for (size_t i = 0; i < table.row_count(); ++i)
    if (cell(table, i, "name") == name) return i;
  FAIL("no row " << name);
  return 0;
}
}  // namespace

TEST_CASE("trace diff: own time of parents and children; names are compared between runs, and steps by position") {
  Folder folder;
  const auto step = [](int number, double at, double child, const std::string& address) {
    return std::vector<std::string>{op("ProfilerStep#" + std::to_string(number), at, 100, "user_annotation"),
                                    op("aten::linear", at + 1, 50), op("aten::addmm", at + 2, child),
                                    op("hook at " + address + ">", at + 60, 5)};
  };
  std::vector<std::string> a = step(1, 0, 10, "0x7f00aa11"), b = step(7, 0, 30, "0x7fbb00cc");
  for (auto [list, number] : {std::pair{&a, 2}, {&b, 8}})
    for (std::string& e : step(number, 1000, 10, "0x7f00aa11")) list->push_back(std::move(e));
  b.push_back(op("aten::new", 70, 1));
  const Trace control = read_with("kineto", {folder.add("a/t.json", trace(a))});
  const Trace test = read_with("kineto", {folder.add("b/t.json", trace(b))});
  const AnalysisResult result = diff(control, test);
  const Table& table = result.tables[0];
  CHECK(cell(table, 0, "name") == "aten::addmm");  // + 20 µs, then − 20 µs of its parent
  CHECK(cell(table, 0, "self_diff_ns") == "20000");
  const size_t parent = row_of(table, "aten::linear");
  CHECK(cell(table, parent, "self_diff_ns") == "-20000");
  CHECK(cell(table, parent, "total_diff_ns") == "0");
  CHECK(cell(table, row_of(table, "hook at 0x…>"), "count_diff") == "0");
  CHECK(cell(table, row_of(table, "ProfilerStep"), "control_count") == "1");  // without the last step
  const Table& lists = result.tables[1];
  CHECK(cell(lists, 0, "change") == "added");
  CHECK(cell(lists, 0, "name") == "aten::new");
  CHECK(lists.row_count() == 5);

  const AnalysisResult second = diff(control, test, options({{"control-iteration", "2"}, {"test-iteration", "8"}}));
  CHECK(cell(second.tables[0], 0, "self_diff_ns") == "0");
  AnalysisInput bad;
  bad.control = &control;
  bad.test = &test;
  bad.options = options({{"control-iteration", "5"}});
  CHECK(!find_analysis("trace-diff")->run(bad));
}

TEST_CASE("memory timeline") {
  Folder folder;
  AnalysisInput input;
  input.paths = {folder.add("m.json", "[[-1, 0, 100, 0], [50, 1, 7, 4], [50, 1, 3, 5], [90, 3, -7, 4]]\n")};
  const AnalysisResult result = answer("memory-timeline", input);
  CHECK(cell(result.tables[0], 0, "total_bytes") == "110");
  const Table& table = result.tables[1];
  REQUIRE(table.row_count() == 2);  // HTA: three, two of them at time 50
  CHECK(cell(table, 0, "time_ns") == "0");
  CHECK(cell(table, 0, "parameter_bytes") == "100");
  CHECK(cell(table, 1, "time_ns") == "40");
  CHECK(cell(table, 1, "activation_bytes") == "0");
  const Analysis* analysis = find_analysis("memory-timeline");
  input.hta = true;
  CHECK(!analysis->run(input));  // HTA reads gzip only
  input.hta = false;
  for (const char* bad :
       {"", "{}", "[[1,2,3]]", "[[1,1,1,8]]", "[[1,1,1,-1]]", "[[1,1,1.5,1]]", "[[1,1,1,1]", "[1,2]"}) {
    input.paths = {folder.add("bad.json", bad)};
    CHECK_MESSAGE(!analysis->run(input), bad);
  }
}

TEST_CASE("CUPTI counters: operators by order of launches") {
  Folder folder;
  const auto range = [](double ts, int fma, const std::string& more = "") {
    return event("range", "cuda_profiler_range", 0, 0, ts, 5,
                 "\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\":" + std::to_string(fma) +
                     ", \"smsp__sass_thread_inst_executed_op_dadd_pred_on.sum\": 3" + more);
  };
  const std::vector<std::string> events = {
      op("aten::linear", 0, 50),   op("aten::addmm", 1, 20), launch(5, 1), launch(100, 2), range(300, 10),
      range(200, 20, ",\"x\":1.5")};
  const Trace read = read_with("kineto", {folder.add("t.json", trace(events))});
  const AnalysisResult result = answer("cupti-counter-data-with-operators", read);
  const Table& table = result.tables[0];
  REQUIRE(table.row_count() == 2);
  CHECK(cell(table, 0, "start_ns") == "200000");
  CHECK(cell(table, 0, "op_stack") == "aten::linear > aten::addmm");
  CHECK(cell(table, 0, "flop_count") == "43");
  CHECK(cell(table, 0, "x") == "1.5");
  CHECK(cell(table, 1, "op_stack").empty());  // launched outside every operator
  CHECK(cell(table, 1, "x").empty());
  const Trace more = read_with("kineto", {folder.add("u.json", trace({launch(5, 1), range(1, 1), range(2, 2)}))});
  const AnalysisResult unequal = answer("cupti-counter-data-with-operators", more);
  CHECK(unequal.tables[0].row_count() == 2);
  CHECK(unequal.notes.count("cupti.unequal") == 1);
}
