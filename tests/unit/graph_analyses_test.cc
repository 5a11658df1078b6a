// Call graph, sequences, operators and the critical path on tiny traces: where the default differs from HTA, and why.
#include "tiny_traces.h"

using namespace stageline;

using namespace tiny;

TEST_CASE("critical path: gaps weigh what they are and the path covers the wall time") {
  const std::vector<std::string> events = {op("a", "0.5", "10"), op("b", "50.5", "10")};
  const auto ours = answer("critical-path-analysis", events);
  REQUIRE(ours);
  CHECK(value(ours->tables[0], "bound_by", "gap between host operators", "dur_ns") == 40'000);
  CHECK(value(ours->tables[0], "bound_by", "host operators", "dur_ns") == 20'000);
  CHECK(value(ours->tables[0], "bound_by", "path", "dur_ns") == 60'000);
  CHECK(value(ours->tables[0], "bound_by", "wall", "dur_ns") == 60'000);
  const auto hta = answer("critical-path-analysis", events, true, {{"annotation", ""}});
  REQUIRE(hta);
  double weight = 0;
  for (size_t r = 0; r < hta->tables[3].row_count(); ++r) weight += hta->tables[3].real(r, 3);
  CHECK(weight == 18);  // two operators after rounding; the gap is a dependency without weight
}

TEST_CASE("critical path: a blocking copy's time is the device's") {
  const auto ours =
      answer("critical-path-analysis", {op("aten::copy_", "0", "100"), call("cudaMemcpyAsync", "10", "85", 1),
                                        kernel("Memcpy DtoH (Device -> Pageable)", "20", "70", 1, 7, "gpu_memcpy")});
  REQUIRE(ours);
  CHECK(value(ours->tables[0], "bound_by", "memory", "dur_ns") == 70'000);
  CHECK(value(ours->tables[0], "bound_by", "launch delay", "dur_ns") == 10'000);
  CHECK(value(ours->tables[0], "bound_by", "return of a blocking call", "dur_ns") == 5'000);
  CHECK(value(ours->tables[0], "bound_by", "host operators", "dur_ns") == 15'000);
}

TEST_CASE("critical path: a graph's kernels all hang on its launch, on stream 0 too, and hold each other up") {
  const auto ours =
      answer("critical-path-analysis", {call("cudaGraphLaunch", "0", "5", 1), kernel("k1", "10", "20", 1, 0),
                                        kernel("k2", "32", "20", 1, 3), kernel("k3", "55", "5", 1, 0)});
  REQUIRE(ours);
  CHECK(value(ours->tables[0], "bound_by", "computation", "dur_ns") == 45'000);
  CHECK(value(ours->tables[0], "bound_by", "gap between kernels", "dur_ns") == 5'000);
  CHECK(value(ours->tables[0], "bound_by", "launch delay", "dur_ns") == 10'000);
  int64_t launches = 0;
  for (size_t r = 0; r < ours->tables[3].row_count(); ++r) launches += ours->tables[3].text(r, 2) == "launch";
  CHECK(launches == 3);
}

TEST_CASE("call graph: kernels of stream 0, self times; HTA raises on what its rounding makes") {
  const std::vector<std::string> events = {op("aten::mm", "0.2", "20.2"), call("hipLaunchKernel", "2.1", "3.4", 5),
                                           op("aten::empty", "8.1", "0.2"), op("aten::empty_strided", "8.35", "1.3"),
                                           kernel("gemm", "30.1", "7.5", 5, 0)};
  const auto ours = answer("call-graph", events);
  REQUIRE(ours);
  CHECK(value(ours->tables[0], "name", "gemm", "depth") == 2);
  CHECK(value(ours->tables[0], "name", "aten::mm", "self_ns") == 20'200 - 3'400 - 200 - 1'300);
  CHECK(value(ours->tables[1], "index", "0", "kernel_ns") == 7'500);
  CHECK(value(ours->tables[1], "index", "0", "height") == 2 + 0);
  const auto hta = answer("call-graph", events, true);
  REQUIRE_FALSE(hta);
  CHECK(hta.error().what.starts_with("ValueError: Unexpected case"));
  CHECK(hta.error().code == ErrorCode::kBadInput);
  const auto stack = answer("call-graph", events, true, {{"builder", "call-stack"}});
  REQUIRE(stack);
  CHECK(stack->tables[0].row_count() == 5);
}

TEST_CASE("call graph: backward work of another thread hangs under its forward operator") {
  const auto flow = [](const char* ph, int tid, const char* ts) {
    return std::string("{\"ph\":\"") + ph + "\",\"id\":1,\"pid\":9,\"tid\":" + std::to_string(tid) + ",\"ts\":" + ts +
           ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"bp\":\"e\"}";
  };
  const auto ours = answer("call-graph", {op("aten::mm", "0", "10"), op("engine", "20", "30", 11),
                                          op("MmBackward0", "22", "20", 11), call("cudaLaunchKernel", "25", "2", 3, 11),
                                          kernel("gemm", "30", "9", 3), flow("s", 10, "0"), flow("f", 11, "22")});
  REQUIRE(ours);
  CHECK(value(ours->tables[0], "name", "engine", "parent") == 0);
  CHECK(value(ours->tables[0], "name", "aten::mm", "self_ns") == 10'000);
  CHECK(value(ours->tables[1], "index", "0", "kernel_count") == 0);
  CHECK(value(ours->tables[1], "index", "0", "backward_kernel_ns") == 9'000);
}

TEST_CASE("operators: own thread only, copies count, an unmatched launch is no end") {
  const std::vector<std::string> events = {op("aten::outer", "0", "100"),
                                           op("aten::elsewhere", "5", "50", 11),
                                           call("cudaMemcpyAsync", "10", "2", 1),
                                           call("cudaLaunchKernel", "20", "2", 2),
                                           call("cudaLaunchKernel", "30", "2", 3),
                                           kernel("Memcpy HtoD", "15", "3", 1, 7, "gpu_memcpy"),
                                           kernel("k", "25", "4", 2)};
  const auto ours = answer("aten-op-kernels-and-delay", events);
  REQUIRE(ours);
  const Table& table = ours->tables[0];
  REQUIRE(table.row_count() == 1);
  CHECK(table.text(0, 1) == "aten::outer");
  CHECK(table.text(0, 2) == "Memcpy HtoD -> k");
  CHECK(value(table, "rank", "0", "avg_launch_delay_ns") == 10'000);
  CHECK(value(table, "rank", "0", "kernel_ns") == 7'000);
  const auto hta = answer("aten-op-kernels-and-delay", events, true);
  REQUIRE_FALSE(hta);
  CHECK(hta.error().what.starts_with("ValueError: can only convert"));
  const auto none = answer("aten-op-kernels-and-delay", {op("aten::a", "0", "1")}, true);
  REQUIRE_FALSE(none);
  CHECK(none.error().what == "KeyError: 'thread_id'");
}

TEST_CASE("sequences: wall from first start to last end, gaps where none of the call's work runs") {
  // The first call has work at 5–9, 12–20 with 14–16 inside it, and 25–27: gaps of 3 and 5 µs. The second has it at
  // 65–71, 70–72 and 72–74 on two streams, and no gap. The work of another call from 9 to 12 fills no gap.
  std::vector<std::string> events = {op("aten::linear", "1", "3"), op("aten::linear", "60", "4"), op("other", "4", "1"),
                                     call("cudaLaunchKernel", "4.2", "0.1", 7), kernel("x", "9", "3", 7, 8)};
  const std::tuple<const char*, const char*, const char*, int> work[] = {
      {"1.1", "5", "4", 7},   {"1.5", "12", "8", 7},  {"2.0", "14", "2", 8},  {"2.5", "25", "2", 7},
      {"60.1", "65", "6", 7}, {"60.5", "70", "2", 8}, {"61.0", "72", "1", 7}, {"61.5", "73", "1", 7}};
  int n = 10;
  for (const auto& [launch, start, dur, stream] : work) {
    events.push_back(call("cudaLaunchKernel", launch, "0.1", ++n));
    events.push_back(kernel("k", start, dur, n, stream));
  }
  const auto ours = answer("frequent-cuda-kernel-sequences", events, false, {{"operator-name", "linear"}});
  REQUIRE(ours);
  REQUIRE(ours->tables[0].row_count() == 1);
  CHECK(value(ours->tables[0], "rank", "0", "count") == 2);
  CHECK(value(ours->tables[0], "rank", "0", "kernel_ns") == 26'000);
  CHECK(value(ours->tables[0], "rank", "0", "wall_ns") == 22'000 + 9'000);
  CHECK(value(ours->tables[0], "rank", "0", "gap_ns") == 3'000 + 5'000);
}

TEST_CASE("sequences: outermost calls of every branch, whatever the depth") {
  const std::vector<std::string> events = {
      op("top", "0", "50"),           op("aten::linear", "1", "20"),          call("cudaLaunchKernel", "2", "1", 1),
      op("aten::linear", "60", "20"), call("cudaLaunchKernel", "61", "1", 2), kernel("k", "5", "4", 1),
      kernel("k", "65", "6", 2)};
  const std::vector<std::pair<std::string, std::string>> options = {{"operator-name", "linear"},
                                                                    {"min-pattern-len", "1"}};
  const auto ours = answer("frequent-cuda-kernel-sequences", events, false, options);
  REQUIRE(ours);
  REQUIRE(ours->tables[0].row_count() == 1);
  CHECK(ours->tables[0].text(0, 1) == "aten::linear|k");
  CHECK(value(ours->tables[0], "rank", "0", "count") == 2);
  CHECK(value(ours->tables[0], "rank", "0", "kernel_ns") == 10'000);
  const auto hta = answer("frequent-cuda-kernel-sequences", events, true, options);
  REQUIRE(hta);
  CHECK(value(hta->tables[0], "rank", "0", "count") == 1);  // at the smallest depth only
  CHECK_FALSE(answer("frequent-cuda-kernel-sequences", events));
}
