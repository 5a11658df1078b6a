// Calls added up by call path, and several ranks' trees laid over each other.
#include "profile/call_tree.h"

#include <map>

#include "torch_traces.h"

using namespace stageline;

namespace {

std::string frame(const std::string& name, int tid, const std::string& ts, const std::string& dur, int id,
                  const std::string& parent) {
  return torch_event("python_function", name, 100, tid, ts, dur,
                     "\"Python id\":" + std::to_string(id) + ",\"Python parent id\":" + parent);
}
std::string op(const std::string& name, int tid, const std::string& ts, const std::string& dur,
               const std::string& args = "") {
  return torch_event("cpu_op", name, 100, tid, ts, dur, args);
}
std::string autograd(int sequence, int thread) {
  return "\"Sequence number\":" + std::to_string(sequence) + ",\"Fwd thread id\":" + std::to_string(thread);
}

// Two calls of step(), the second with a backward on thread 2 and half of step 2's time outside of all operators.
std::vector<std::string> training() {
  return {frame("train.py(1): <module>", 1, "0", "200", 1, "null"),
          frame("train.py(4): step", 1, "10", "30", 2, "1"),
          op("aten::linear", 1, "12", "20", autograd(7, 0)),
          op("aten::addmm", 1, "14", "10", autograd(7, 0)),
          call("cudaLaunchKernel", "16", "2", 5),
          work("gemm", "20", "5", 5),
          frame("train.py(4): step", 1, "50", "30", 3, "1"),
          op("aten::linear", 1, "52", "10", autograd(8, 0)),
          op("autograd::engine::evaluate_function: AddmmBackward0", 2, "90", "10", autograd(7, 1)),
          op("AddmmBackward0", 2, "91", "8", autograd(7, 1)),
          R"({"ph":"s","id":1,"pid":100,"tid":1,"ts":14,"cat":"fwdbwd","name":"fwdbwd"})",
          R"({"ph":"f","id":1,"pid":100,"tid":2,"ts":91,"cat":"fwdbwd","name":"fwdbwd","bp":"e"})"};
}

CallTree tree_of(const Trace& trace, size_t part = 0) {
  return call_tree(trace, trace.parts[part], FunctionNames(trace));
}

// "step > aten::linear" → {host, device, calls} of the node itself.
using Sums = std::array<int64_t, 3>;
std::map<std::string, Sums> by_path(const CallTree& tree) {
  std::map<std::string, Sums> out;
  std::vector<std::string> path(tree.nodes.size());
  for (size_t n = 1; n < tree.nodes.size(); ++n) {
    const CallTree::Node& node = tree.nodes[n];
    REQUIRE(node.parent < n);
    path[n] = (node.parent == 0 ? "" : path[node.parent] + " > ") + std::string(tree.frames.text(node.frame));
    REQUIRE(out.emplace(path[n], Sums{tree.host_ns[n], tree.device_ns[n], tree.calls[n]}).second);
  }
  return out;
}

}  // namespace

TEST_CASE("call tree: equal paths are merged, every moment counts once, and backward work stands under its forward") {
  const Trace trace = torch_trace(training());
  const CallTree tree = tree_of(trace);
  const auto sums = by_path(tree);
  const std::string module = "train.py(1): <module>", step = module + " > train.py(4): step",
                    linear = step + " > aten::linear", addmm = linear + " > aten::addmm";
  CHECK(sums.at(module) == Sums{140'000, 0, 1});
  CHECK(sums.at(step) == Sums{30'000, 0, 2});
  CHECK(sums.at(linear) == Sums{20'000, 0, 2});
  CHECK(sums.at(addmm) == Sums{8'000, 0, 1});
  CHECK(sums.at(addmm + " > cudaLaunchKernel") == Sums{2'000, 0, 1});
  CHECK(sums.at(addmm + " > cudaLaunchKernel > gemm") == Sums{0, 5'000, 1});
  int64_t host = 0, device = 0, engine = 0;
  for (const auto& [path, own] : sums) {
    host += own[0];
    device += own[1];
    if (path.find("evaluate_function") == std::string::npos) continue;
    engine += own[0];
    CHECK_MESSAGE(path.starts_with(linear), path);  // where the forward ran, not on its own
  }
  CHECK(host == 210'000);  // the two threads' busy time
  CHECK(device == 5'000);
  CHECK(engine == 10'000);
}

TEST_CASE("call tree: a kernel that communicates is of another kind than one that computes, and so is a copy") {
  std::vector<std::string> events = training();
  events.push_back(call("cudaLaunchKernel", "18", "1", 6));
  events.push_back(work("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "30", "9", 6));
  events.push_back(call("cudaMemcpyAsync", "19", "1", 7));
  events.push_back(work("Memcpy HtoD (Pageable -> Device)", "40", "2", 7, 7, "gpu_memcpy"));
  const Trace trace = torch_trace(events);
  const CallTree tree = tree_of(trace);
  std::map<std::string, FrameKind> kinds;
  for (const CallTree::Node& node : tree.nodes)
    kinds[std::string(tree.frames.text(node.frame)).substr(0, 6)] = node.kind;
  CHECK(kinds.at("gemm") == FrameKind::kDevice);
  CHECK(kinds.at("ncclDe") == FrameKind::kCommunication);
  CHECK(kinds.at("Memcpy") == FrameKind::kMemory);
}

TEST_CASE("call tree: ranks laid over each other keep their own columns and sums") {
  const Trace trace = torch_trace(training());
  std::vector<std::string> longer = training();
  longer.push_back(op("aten::only_here", 1, "150", "40"));
  const Trace other = torch_trace(longer);
  const CallTree a = tree_of(trace), b = tree_of(other);
  const MergedCalls whole = merge_calls({&a, &b}, 1000);
  CHECK(whole.left_out == 0);
  CHECK(whole.nodes.size() == b.nodes.size());  // b has all of a's paths
  REQUIRE(whole.host_ns.size() == 2);
  int64_t only_here = 0;
  for (size_t n = 0; n < whole.nodes.size(); ++n)
    if (whole.frames.text(whole.nodes[n].frame) == "aten::only_here") {
      CHECK(whole.host_ns[0][n] == 0);
      only_here = whole.host_ns[1][n];
    }
  CHECK(only_here == 40'000);

  // Cut: what is left out is in its parent's rest, and the sums stay.
  const MergedCalls cut = merge_calls({&a, &b}, 8);
  CHECK(cut.left_out > 0);
  CHECK(cut.max_left_out > 0);
  CHECK(cut.max_left_out < 1);
  const auto sum = [](const std::vector<int64_t>& values) {
    int64_t out = 0;
    for (const int64_t value : values) out += value;
    return out;
  };
  for (size_t c = 0; c < 2; ++c) {
    CHECK(sum(cut.host_ns[c]) == sum(whole.host_ns[c]));
    CHECK(sum(cut.device_ns[c]) == sum(whole.device_ns[c]));
    CHECK(sum(cut.calls[c]) == sum(whole.calls[c]));
  }
  for (size_t n = 1; n < cut.nodes.size(); ++n) CHECK(cut.nodes[n].parent < n);
}

TEST_CASE("call tree: of an area only its lanes count, with their time within it") {
  const Trace trace = torch_trace(training());
  const Part& part = trace.parts[0];
  // Thread 1 alone, from 20 to 60 µs: half of the first step, and 10 µs of the second.
  CallArea area;
  area.chosen.assign(part.slices.size(), false);
  int64_t zero = INT64_MAX;
  for (const int64_t start_ns : part.slices.start_ns) zero = std::min(zero, start_ns);
  area.from_ns = zero + 20'000;
  area.to_ns = zero + 60'000;
  for (const Lane& lane : part.lanes)
    if (lane.tid == "1")
      for (size_t i = lane.begin; i < lane.end; ++i) area.chosen[i] = true;
  const auto sums = by_path(call_tree(trace, part, FunctionNames(trace), &area));
  const std::string module = "train.py(1): <module>", step = module + " > train.py(4): step",
                    linear = step + " > aten::linear";
  CHECK(sums.at(module) == Sums{10'000, 0, 1});
  CHECK(sums.at(step) == Sums{10'000, 0, 2});
  CHECK(sums.at(linear) == Sums{16'000, 0, 2});
  CHECK(sums.at(linear + " > aten::addmm") == Sums{4'000, 0, 1});
  CHECK(sums.count(linear + " > aten::addmm > cudaLaunchKernel") == 0);  // it ended at 18 µs
  // The kernel was launched from the thread and ran within the window.
  int64_t host = 0, device = 0;
  for (const auto& [path, own] : sums) host += own[0], device += own[1];
  CHECK(host == 40'000);
  CHECK(device == 5'000);
}
