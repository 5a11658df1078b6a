// The modules and the memory of tb-module and tb-memory, and categories of memory: numbers by hand.
#include "profile/memory_blocks.h"
#include "torch_traces.h"

using namespace stageline;

namespace {

std::string frame(const std::string& name, int tid, const std::string& ts, const std::string& dur, int id,
                  const std::string& parent, int module = -1) {
  return torch_event("python_function", name, 100, tid, ts, dur,
                     "\"Python id\":" + std::to_string(id) + ",\"Python parent id\":" + parent +
                         (module < 0 ? "" : ",\"Python module id\":" + std::to_string(module)));
}
std::string op(const std::string& name, int tid, const std::string& ts, const std::string& dur,
               const std::string& args = "") {
  return torch_event("cpu_op", name, 100, tid, ts, dur, args);
}
std::string external(int id) { return "\"External id\":" + std::to_string(id); }
std::string memory(const std::string& ts, int64_t bytes, int64_t address, int64_t total = -1, int type = 1,
                   int tid = 1) {
  return R"({"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":100,"tid":)" + std::to_string(tid) +
         ",\"ts\":" + ts + ",\"args\":{\"Device Type\":" + std::to_string(type) +
         ",\"Device Id\":0,\"Bytes\":" + std::to_string(bytes) +
         (address == 0 ? "" : ",\"Addr\":" + std::to_string(address)) +
         (total < 0 ? "" : ",\"Total Allocated\":" + std::to_string(total) + ",\"Total Reserved\":4096") + "}}";
}

// Net calls Linear twice through a plain function; a kernel each; one backward root and its gradients.
std::vector<std::string> net() {
  return {step(1, "0", "1000"),
          frame("nn.Module: Net_0", 1, "10", "100", 1, "null", 0),
          frame("net.py(3): forward", 1, "12", "90", 2, "1"),
          frame("nn.Module: Linear_0", 1, "20", "30", 3, "2", 1),
          op("aten::linear", 1, "22", "20", external(1) + R"(,"Sequence number":5,"Fwd thread id":0)"),
          torch_event("cuda_runtime", "cudaLaunchKernel", 100, 1, "25", "4", external(1) + ",\"correlation\":1"),
          torch_event("kernel", "gemm", 0, 7, "40", "7", external(1) + ",\"correlation\":1,\"stream\":7"),
          frame("nn.Module: Linear_0", 1, "60", "30", 4, "2", 1),
          op("aten::linear", 1, "62", "20", external(2) + R"(,"Sequence number":6,"Fwd thread id":0)"),
          torch_event("cuda_runtime", "cudaLaunchKernel", 100, 1, "65", "4", external(2) + ",\"correlation\":2"),
          torch_event("kernel", "gemm", 0, 7, "80", "9", external(2) + ",\"correlation\":2,\"stream\":7"),
          op("aten::relu", 1, "95", "5", external(3)),
          op("autograd::engine::evaluate_function: AddmmBackward0", 2, "200", "40", external(4)),
          op("AddmmBackward0", 2, "202", "30", external(5) + R"(,"Sequence number":6,"Fwd thread id":1)"),
          torch_event("cuda_runtime", "cudaLaunchKernel", 100, 2, "205", "4", external(5) + ",\"correlation\":3"),
          torch_event("kernel", "gemm_back", 0, 7, "220", "11", external(5) + ",\"correlation\":3,\"stream\":7"),
          op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 2, "250", "10", external(6)),
          R"({"ph":"s","id":1,"pid":100,"tid":1,"ts":62,"cat":"fwdbwd","name":"fwdbwd"})",
          R"({"ph":"f","id":1,"pid":100,"tid":2,"ts":202,"cat":"fwdbwd","name":"fwdbwd","bp":"e"})"};
}

Table asked(const Trace& trace, const char* analysis, std::string_view table) {
  AnalysisInput input;
  input.trace = &trace;
  auto result = find_analysis(analysis)->run(input);
  REQUIRE_MESSAGE(result, (result ? "" : result.error().text()));
  return table_of(result->tables, table);
}

std::vector<std::string> column(const Table& table, std::string_view name) {
  std::vector<std::string> out;
  for (size_t row = 0; row < table.row_count(); ++row)
    out.push_back(table.raw_text(row, static_cast<size_t>(table.column_index(name))));
  return out;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("tb-module: calls, operators, host and device, backward by its forward operator") {
  const Trace trace = torch_trace(net());
  const Table table = asked(trace, "tb-module", "modules");
  CHECK(column(table, "path") == Texts{"Net_0", "Net_0/Linear_0"});
  CHECK(column(table, "occurrences") == Texts{"1", "2"});
  CHECK(column(table, "operators") == Texts{"1", "2"});  // relu; linear twice
  CHECK(column(table, "host_ns") == Texts{"100000", "60000"});
  CHECK(column(table, "self_host_ns") == Texts{"35000", "20000"});  // 100 − 2·30 − 5; 2·(30 − 20)
  CHECK(column(table, "device_ns") == Texts{"16000", "16000"});
  CHECK(column(table, "self_device_ns") == Texts{"0", "16000"});
  CHECK(column(table, "mean_ns") == Texts{"16000", "8000"});
  CHECK(column(table, "backward_host_ns") == Texts{"50000", "50000"});  // the root and AccumulateGrad after it
  CHECK(column(table, "self_backward_host_ns") == Texts{"0", "50000"});
  CHECK(column(table, "backward_device_ns") == Texts{"11000", "11000"});
  const Table flat = asked(trace, "tb-module", "module-totals");
  CHECK(column(flat, "name") == Texts{"Linear_0", "Net_0"});
}

TEST_CASE("tb-module: Lightning's ranges are modules by their paths") {
  const auto range = [](const std::string& name, const std::string& ts, const std::string& dur) {
    return torch_event("user_annotation", name, 100, 1, ts, dur);
  };
  const Table table =
      asked(torch_trace({range("[pl][module]a.Net: net", "0", "50"), op("aten::relu", 1, "2", "3"),
                         range("[pl][module]torch.Conv: net.conv", "10", "20"), op("aten::conv2d", 1, "12", "10")}),
            "tb-module", "modules");
  CHECK(column(table, "path") == Texts{"net", "net.conv"});
  CHECK(column(table, "depth") == Texts{"0", "1"});
  CHECK(column(table, "operators") == Texts{"1", "1"});
  CHECK(column(table, "self_host_ns") == Texts{"27000", "10000"});
}

TEST_CASE("tb-module: a hundred thousand modules deep, and frames that are their own parents") {
  constexpr int kDeep = 100'000;
  std::vector<std::string> events;
  for (int i = 0; i < kDeep; ++i)
    events.push_back(frame("nn.Module: M_" + std::to_string(i % 3), 1, std::to_string(i),
                           std::to_string(2 * (kDeep - i)), i + 1, i == 0 ? "null" : std::to_string(i), i));
  events.push_back(frame("nn.Module: Self_0", 2, "5", "5", kDeep + 1, std::to_string(kDeep + 1), 7));
  events.push_back(frame("nn.Module: A_0", 3, "5", "5", kDeep + 2, std::to_string(kDeep + 3), 8));
  events.push_back(frame("nn.Module: B_0", 4, "5", "5", kDeep + 3, std::to_string(kDeep + 2), 9));
  const Trace trace = torch_trace(events);
  const Table table = asked(trace, "tb-module", "modules");
  CHECK(table.row_count() >= kDeep);
  CHECK(cell(table, "self_host_ns", "depth", std::to_string(kDeep - 1)) == "2000");
}

TEST_CASE("tb-memory: blocks, operators and peaks by hand") {
  const Trace trace =
      torch_trace({op("aten::linear", 1, "10", "80"), op("aten::empty", 1, "20", "10"), memory("25", 512, 0xa0, 612),
                   op("aten::mul", 1, "40", "20"), memory("45", 64, 0xb0, 676), memory("50", -512, 0xa0, 164),
                   memory("70", -100, 0xc0, 64), memory("500", 32, 0xd0, 96)});
  const Table events = asked(trace, "tb-memory", "memory-events");
  CHECK(column(events, "operator") == Texts{"aten::linear (aten::empty)", "aten::mul", "", ""});
  CHECK(column(events, "size_bytes") == Texts{"512", "64", "100", "32"});
  CHECK(column(events, "allocation_ns") == Texts{"15000", "35000", "", "490000"});
  CHECK(column(events, "duration_ns") == Texts{"25000", "", "", ""});
  const Table operators = asked(trace, "tb-memory", "memory-operators");
  CHECK(cell(operators, "size_increase_bytes", "operator", "aten::linear") == "-36");  // 512 + 64 − 512 − 100
  CHECK(cell(operators, "self_size_increase_bytes", "operator", "aten::linear") == "-100");
  CHECK(cell(operators, "allocation_size_bytes", "operator", "aten::linear") == "576");
  CHECK(cell(operators, "self_allocation_count", "operator", "aten::mul") == "1");
  CHECK(cell(operators, "self_size_increase_bytes", "operator", "aten::mul") == "-448");
  const Table peaks = asked(trace, "tb-memory", "memory-peaks");
  CHECK(cell(peaks, "peak_bytes") == "676");
  CHECK(cell(peaks, "peak_time_ns") == "35000");
}

TEST_CASE("tb-memory: nested calls of one name count their bytes once") {
  const Trace trace = torch_trace({op("aten::cat", 1, "0", "100"), op("aten::cat", 1, "10", "50"),
                                   op("aten::copy_", 1, "70", "5"), memory("20", 8, 0xa0, 8)});
  CHECK(cell(asked(trace, "tb-memory", "memory-operators"), "allocation_size_bytes") == "8");
}

TEST_CASE("tb-memory: frees without allocation or address, addresses twice, damaged sizes") {
  const Trace trace =
      torch_trace({op("aten::a", 1, "0", "100"), memory("1", 8, 0xa0), memory("2", 16, 0xa0), memory("3", -16, 0xa0),
                   memory("4", -4, 0xe0), memory("5", -4, 0xe0), memory("6", 2, 0), memory("7", -2, 0),
                   memory("8", 0, 0xf0), memory("9", INT64_MAX, 0xaa), memory("10", INT64_MAX, 0xab),
                   memory("11", INT64_MIN, 0xac), memory("12", 5, 0xa0, -1, 0)});
  const Table events = asked(trace, "tb-memory", "memory-events");
  CHECK(column(events, "size_bytes").size() == 10);  // 8, 16, 4, 4, 2, 2, three damaged, 5
  CHECK(cell(events, "free_ns", "size_bytes", "8").empty());
  CHECK(cell(events, "duration_ns", "size_bytes", "16") == "1000");
  CHECK(asked(trace, "memory-categories", "memory-category-peaks").row_count() == 2);
}

TEST_CASE("tb-memory: more devices than any rank has are left out and counted") {
  std::vector<std::string> events = {op("aten::a", 1, "0", "100")};
  for (int type = 20; type < 120; ++type) events.push_back(memory("1", 8, 0xa0, 8, type));
  const Trace trace = torch_trace(events);
  CHECK(asked(trace, "tb-memory", "memory-peaks").row_count() == 64);
  CHECK(memory_history(trace.parts[0]).more_devices == 36);
}

TEST_CASE("memory categories: born and freed in which phase") {
  const Trace trace =
      torch_trace({op("aten::empty", 1, "1", "2"),
                   memory("2", 1, 0x10),  // parameter
                   frame("nn.Module: Net_0", 1, "10", "50", 1, "null", 0),
                   op("aten::relu", 1, "12", "20"),  //
                   memory("15", 2, 0x20),
                   memory("16", 4, 0x30),
                   memory("30", -4, 0x30),  // activation, temporary
                   torch_event("user_annotation", "enumerate(DataLoader)#x.__next__", 100, 1, "3", "4"),  //
                   memory("5", 8, 0x40),                                                                  // input
                   op("autograd::engine::evaluate_function: A", 1, "100", "20"),
                   memory("105", 16, 0x50),  // gradient
                   memory("106", 32, 0x60),
                   memory("110", 64, 0x70),
                   memory("111", -64, 0x70),  // detail, temporary
                   memory("115", -2, 0x20),   //
                   op("autograd::engine::evaluate_function: B", 1, "130", "20"),
                   memory("140", -32, 0x60),                                                        //
                   torch_event("user_annotation", "Optimizer.step#SGD.step", 100, 1, "200", "50"),  //
                   memory("210", 128, 0x80),
                   memory("211", 256, 0x90),
                   memory("220", -256, 0x90),  // state, temporary
                   memory("300", -16, 0x50),
                   memory("310", -512, 0xa0)});  // unknown
  const Part& part = trace.parts[0];
  const MemoryHistory history = memory_history(part);
  const MemoryClasses classes = classify_memory(trace, part, history);
  const auto class_of = [&](int64_t bytes) -> std::string {
    for (size_t b = 0; b < history.blocks.size(); ++b)
      if (history.blocks[b].bytes == bytes) return kMemoryClassNames[classes.of_block[b]];
    return "(none)";
  };
  CHECK(class_of(1) == "parameter");
  CHECK(class_of(2) == "activation");
  CHECK(class_of(4) == "temporary");
  CHECK(class_of(8) == "input");
  CHECK(class_of(16) == "gradient");
  CHECK(class_of(32) == "autograd_detail");
  CHECK(class_of(64) == "temporary");
  CHECK(class_of(128) == "optimizer_state");
  CHECK(class_of(256) == "temporary");
  CHECK(class_of(512) == "unknown");
}
