// Stacks for flame graphs: what is in a line, and that nothing is lost or counted twice.
#include "exporters/stack_export.h"

#include <sstream>

#include "torch_traces.h"

using namespace stageline;

namespace {

std::string frame(const std::string& name, const std::string& ts, const std::string& dur, int id,
                  const std::string& parent) {
  return torch_event("python_function", name, 100, 1, ts, dur,
                     "\"Python id\":" + std::to_string(id) + ",\"Python parent id\":" + parent);
}

Trace sample() {
  return torch_trace({frame("a b.py(1): main", "0", "100", 1, "null"), frame("m.py(2): f;g", "10", "50", 2, "1"),
                      torch_event("cpu_op", "aten::mm", 100, 1, "20", "30"), call("cudaLaunchKernel", "25", "5", 1),
                      work("gemm", "40", "7", 1), torch_event("cpu_op", "aten::relu", 100, 1, "70", "10"),
                      call("cudaLaunchKernel", "72", "5", 2), work("relu", "80", "4", 2),
                      torch_event("cpu_op", "aten::empty", 100, 1, "200", "9")});
}

std::string written(const Trace& trace, const StackExportOptions& options, std::vector<size_t> parts = {0}) {
  const Folder folder;
  const std::string path = folder.path() + "/out";
  const auto counts = export_stacks(trace, parts, options, path);
  REQUIRE(counts);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("export stacks: a line per call, its own time on its own frame") {
  CHECK(written(sample(), {}) ==
        "a_b.py(1):_main 40\n"               // 100 − 50 − 10
        "a_b.py(1):_main;m.py(2):_f_g 20\n"  // 50 − 30
        "a_b.py(1):_main;m.py(2):_f_g 25\n"  // aten::mm without its call
        "a_b.py(1):_main;m.py(2):_f_g 5\n"   // the call
        "a_b.py(1):_main 5\n"                // aten::relu
        "a_b.py(1):_main 5\n");              // its call; aten::empty has no frame
}

TEST_CASE("export stacks: aggregated, operators and kernels below the frames") {
  StackExportOptions options;
  options.aggregate = true;
  CHECK(written(sample(), options) == "(no_frames) 9\na_b.py(1):_main 50\na_b.py(1):_main;m.py(2):_f_g 50\n");
  options.leaf = StackLeaf::kKernel;
  options.metric = StackMetric::kDeviceTime;
  CHECK(written(sample(), options) ==
        "a_b.py(1):_main;m.py(2):_f_g;aten::mm;gemm 7\na_b.py(1):_main;aten::relu;relu 4\n");
  options.leaf = StackLeaf::kOperator;
  options.metric = StackMetric::kSamples;
  CHECK(written(sample(), options) ==
        "a_b.py(1):_main;m.py(2):_f_g;aten::mm 1\na_b.py(1):_main;aten::relu 1\naten::empty 1\n");
}

TEST_CASE("export stacks: aggregated lines add up though each is less than a microsecond, and ns has them all") {
  const Trace trace =
      torch_trace({frame("a.py(1): main", "0", "1.6", 1, "null"), frame("b.py(2): f", "0.2", "0.8", 2, "1"),
                   frame("c.py(3): g", "1.1", "0.4", 3, "1")});
  StackExportOptions options;
  CHECK(written(trace, options).empty());
  options.nanoseconds = true;
  CHECK(written(trace, options) == "a.py(1):_main 400\na.py(1):_main;b.py(2):_f 800\na.py(1):_main;c.py(3):_g 400\n");
  options.nanoseconds = false;
  options.aggregate = true;
  CHECK(written(trace, options) == "a.py(1):_main;b.py(2):_f 1\n");  // 0.4, 1.2, 1.6: 1 µs of 1.6 is whole
}

TEST_CASE("export stacks: speedscope holds the same, in nanoseconds") {
  StackExportOptions options;
  options.aggregate = options.speedscope = true;
  options.metric = StackMetric::kDeviceTime;
  const std::string text = written(sample(), options);
  CHECK(text.find(R"("samples":[[0],[0,1]])") != std::string::npos);
  CHECK(text.find(R"("weights":[4000,7000])") != std::string::npos);
  CHECK(text.find(R"("endValue":11000)") != std::string::npos);
  CHECK(text.find(R"({"name":"a b.py(1): main"},{"name":"m.py(2): f;g"})") != std::string::npos);
}

TEST_CASE("export stacks: as torch writes them there is nothing without recorded stacks") {
  StackExportOptions options;
  options.as_torch = true;
  CHECK(written(sample(), options).empty());
}

TEST_CASE("export stacks: metrics by torch's names") {
  CHECK(*stack_metric("self_cuda_time_total") == StackMetric::kDeviceTime);
  CHECK(*stack_metric("self-xpu-time-total") == StackMetric::kDeviceTime);
  CHECK_FALSE(stack_metric("cpu_time"));
}

TEST_CASE("export stacks: frames a thousand deep are cut outside") {
  std::vector<std::string> events;
  for (int i = 0; i < 1000; ++i)
    events.push_back(frame("f" + std::to_string(i), std::to_string(i), std::to_string(5000 - 2 * i), i + 1,
                           i == 0 ? "null" : std::to_string(i)));
  const std::string text = written(torch_trace(events), {});
  CHECK(text.find("\n(488_frames_more);f488;f489;") != std::string::npos);
}
