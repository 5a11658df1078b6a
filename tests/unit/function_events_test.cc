// Function events against trees worked out by hand. Times in µs.
#include "profile/function_events.h"

#include "torch_traces.h"

using namespace stageline;

namespace {

struct Tree {
  Trace trace;
  FunctionNames names;
  FunctionEvents made;

  explicit Tree(const std::vector<std::string>& events, const FunctionEventOptions& options = {})
      : trace(torch_trace(events)), names(trace), made(function_events(trace, trace.parts[0], names, options)) {}

  std::string name(int32_t e) const { return e < 0 ? "" : std::string(names.text(made.events[e].name)); }
  // "name<parent self/host device self" of the n-th event of a name.
  std::string of(std::string_view wanted, int n = 0) const {
    for (size_t i = 0; i < made.events.size(); ++i) {
      const FunctionEvent& e = made.events[i];
      if (names.text(e.name) != wanted || n-- > 0) continue;
      return std::string(wanted) + "<" + name(e.parent) + " " + std::to_string(e.self_host_ns / 1000) + "/" +
             std::to_string(e.host_ns() / 1000) + " " + std::to_string(e.self_device_ns / 1000) + "/" +
             std::to_string(e.device_ns / 1000);
    }
    return "(none)";
  }
  std::string memory_of(std::string_view wanted) const {
    for (size_t i = 0; i < made.events.size(); ++i) {
      if (names.text(made.events[i].name) != wanted) continue;
      const FunctionMemory& m = made.memory[i];
      return std::to_string(m.self_host) + "/" + std::to_string(m.host) + " " + std::to_string(m.self_device) + "/" +
             std::to_string(m.device);
    }
    return "(none)";
  }
};

std::string op(const std::string& name, const std::string& ts, const std::string& dur, int id = 0, int tid = 1) {
  return torch_event("cpu_op", name, 100, tid, ts, dur, id > 0 ? "\"External id\":" + std::to_string(id) : "");
}
std::string note(const std::string& name, const std::string& ts, const std::string& dur) {
  return torch_event("user_annotation", name, 100, 1, ts, dur);
}
std::string frame(const std::string& name, const std::string& ts, const std::string& dur) {
  return torch_event("python_function", name, 100, 1, ts, dur);
}
std::string bytes(const std::string& ts, int64_t n, int device = 0, int tid = 1, const char* name = "[memory]") {
  return R"({"ph":"i","cat":"cpu_instant_event","s":"t","name":")" + std::string(name) + R"(","pid":100,"tid":)" +
         std::to_string(tid) + ",\"ts\":" + ts + R"(,"args":{"Device Type":)" + std::to_string(device) +
         ",\"Device Id\":0,\"Bytes\":" + std::to_string(n) + "}}";
}

// Steps, operators, launches and device work; the times are those of the worked example of the page.
const std::vector<std::string> kStep = {step(1, "0", "100"),
                                        op("aten::linear", "10", "50", 1),
                                        op("aten::addmm", "15", "40", 2),
                                        call("cudaLaunchKernel", "40", "5", 11),
                                        op("aten::relu", "70", "20", 3),
                                        call("cudaLaunchKernel", "75", "5", 12),
                                        work("sgemm", "50", "20", 11),
                                        work("relu", "80", "8", 12)};

}  // namespace

TEST_CASE("function events: nesting, self times, device time of the calls within") {
  const Tree tree(kStep);
  CHECK(tree.of("ProfilerStep*") == "ProfilerStep*< 30/100 0/28");
  CHECK(tree.of("aten::linear") == "aten::linear<ProfilerStep* 10/50 0/20");
  CHECK(tree.of("aten::addmm") == "aten::addmm<aten::linear 35/40 20/20");
  CHECK(tree.of("aten::relu") == "aten::relu<ProfilerStep* 15/20 8/8");
  CHECK(tree.of("cudaLaunchKernel") == "cudaLaunchKernel<aten::addmm 5/5 0/0");
  CHECK(tree.of("sgemm") == "sgemm< 0/0 20/20");
  CHECK(tree.made.events.size() == 8);
  CHECK(tree.made.memory.empty());
  const auto order = tree.made.in_torch_order(tree.trace.parts[0]);
  std::string names;
  for (const uint32_t e : order) names += tree.name(static_cast<int32_t>(e)) + " ";
  CHECK(names == "ProfilerStep* aten::linear aten::addmm cudaLaunchKernel sgemm aten::relu cudaLaunchKernel relu ");
}

TEST_CASE("function events: what overlaps in part closes the longer call, as in torch") {
  const Tree tree({op("a", "0", "10"), op("b", "5", "10"), op("c", "6", "2"), op("d", "20", "0"), op("d2", "20", "0")});
  CHECK(tree.of("a") == "a< 10/10 0/0");
  CHECK(tree.of("b") == "b< 8/10 0/0");
  CHECK(tree.of("c") == "c<b 2/2 0/0");
  CHECK(tree.of("d2") == "d2< 0/0 0/0");  // an empty call encloses nothing
}

TEST_CASE("function events: equal intervals nest in the order of the file") {
  const Tree tree({op("a", "0", "10"), op("b", "0", "10"), op("c", "0", "10")});
  CHECK(tree.of("b") == "b<a 0/10 0/0");
  CHECK(tree.of("c") == "c<b 10/10 0/0");
}

TEST_CASE("function events: nested wrappers of one name are one call") {
  const std::vector<std::string> events = {
      op("f", "0", "100", 1),   op("f", "10", "80", 2),   op("f", "20", "60", 3),
      op("g", "30", "10", 4),   op("g", "50", "10", 5),   call("l", "1", "1", 11),
      call("l", "31", "1", 12), work("k", "60", "7", 11), work("k", "70", "5", 12)};
  // The launch at 1 makes two children of the outer f, so that only the inner two are joined.
  const Tree ours(events);
  CHECK(ours.of("f") == "f< 19/100 7/12");
  CHECK(ours.of("f", 1) == "f<f 60/80 0/5");
  CHECK(ours.of("f", 2) == "(none)");
  CHECK(ours.of("g") == "g<f 9/10 5/5");
  CHECK(ours.of("g", 1) == "g<f 10/10 0/0");
  // Own kernels of a joined call: kept by us, lost by torch.
  const std::vector<std::string> own = {
      op("f", "0", "100", 1), op("f", "10", "80", 2),
      torch_event("kernel", "k", 0, 7, "20", "7", "\"External id\":1,\"correlation\":9"),
      torch_event("kernel", "k", 0, 7, "30", "5", "\"External id\":2,\"correlation\":8")};
  CHECK(Tree(own).of("f") == "f< 100/100 12/12");
  CHECK(Tree(own, {.as_torch = true}).of("f") == "f< 100/100 5/5");
}

TEST_CASE("function events: frames are events or leave no mark") {
  const std::vector<std::string> events = {step(1, "0", "100"), frame("main.py(1): f", "10", "60"),
                                           op("aten::relu", "20", "30"), frame("hook.py(1): h", "25", "10"),
                                           op("aten::add", "26", "4")};
  const Tree ours(events);
  CHECK(ours.of("ProfilerStep*") == "ProfilerStep*< 70/100 0/0");
  CHECK(ours.of("aten::relu") == "aten::relu<ProfilerStep* 26/30 0/0");
  CHECK(ours.of("main.py(1): f") == "(none)");
  CHECK(ours.made.event_of_slice.size() == 5);
  const Tree all(events, {.python_frames = true});
  CHECK(all.of("ProfilerStep*") == "ProfilerStep*< 40/100 0/0");
  CHECK(all.of("aten::relu") == "aten::relu<main.py(1): f 20/30 0/0");
  CHECK(all.of("hook.py(1): h") == "hook.py(1): h<aten::relu 6/10 0/0");
}

TEST_CASE("function events: work in flight is in no tree, dropped names are no events") {
  const Tree tree({op("c10d::allreduce_", "0", "10"), note("nccl:all_reduce", "5", "50"),
                   op("aten::is_leaf", "20", "5"), op("aten::add", "21", "2")});
  CHECK(tree.of("nccl:all_reduce") == "nccl:all_reduce< 0/50 0/0");
  CHECK(tree.of("c10d::allreduce_") == "c10d::allreduce_< 10/10 0/0");
  CHECK(tree.of("aten::add") == "aten::add< 2/2 0/0");
  CHECK(tree.of("aten::is_leaf") == "(none)");
}

TEST_CASE("function events: calls that no operator made count in the annotation, and apart in torch") {
  const std::vector<std::string> events = {step(1, "0", "100"), op("aten::mm", "10", "20", 1),
                                           call("cudaLaunchKernel", "12", "5", 11),
                                           call("cudaDeviceSynchronize", "80", "15", 12)};
  CHECK(Tree(events).of("cudaDeviceSynchronize") == "cudaDeviceSynchronize<ProfilerStep* 15/15 0/0");
  CHECK(Tree(events).of("ProfilerStep*") == "ProfilerStep*< 65/100 0/0");
  const Tree torch(events, {.as_torch = true});
  CHECK(torch.of("cudaDeviceSynchronize") == "cudaDeviceSynchronize< 15/15 0/0");
  CHECK(torch.of("cudaLaunchKernel") == "cudaLaunchKernel<aten::mm 5/5 0/0");
  CHECK(torch.of("ProfilerStep*") == "ProfilerStep*< 80/100 0/0");
}

TEST_CASE("function events: memory by thread, and by time alone in torch") {
  const std::vector<std::string> events = {op("aten::empty", "10", "10"),
                                           op("wait", "0", "100", 0, 2),
                                           op("aten::zeros", "5", "20"),
                                           bytes("12", 512),
                                           bytes("20", 64, 1),
                                           bytes("22", -100),
                                           bytes("60", 8),
                                           bytes("200", 7, 0, 3),
                                           bytes("15", 4096, 1, 1, "[OutOfMemory]")};
  const Tree ours(events);
  CHECK(ours.memory_of("aten::zeros") == "-100/412 0/64");
  CHECK(ours.memory_of("aten::empty") == "512/512 64/64");  // both ends of the interval count
  CHECK(ours.memory_of("wait") == "0/0 0/0");
  CHECK(ours.memory_of("[memory]") == "8/8 0/0");
  CHECK(ours.memory_of("[OutOfMemory]") == "0/0 0/0");
  const Tree torch(events, {.as_torch = true});
  CHECK(torch.memory_of("wait") == "420/420 64/64");
  CHECK(torch.memory_of("[memory]") == "7/7 0/0");
}

TEST_CASE("function events: annotations of devices lose the unit that Kineto adds at either end") {
  const Tree tree(
      {work("k", "10.000", "5.000", 1), torch_event("gpu_user_annotation", "step", 0, 7, "9.999", "5.002")});
  for (const FunctionEvent& e : tree.made.events) {
    CHECK(e.on_device);
    CHECK(e.device_ns == 5000);
  }
}

TEST_CASE("function events: 100 000 calls deep, and as many of one name") {
  constexpr int kDeep = 100'000;
  std::vector<std::string> deep, same;
  for (int i = 0; i < kDeep; ++i) {
    const std::string at = std::to_string(i), dur = std::to_string(3 * kDeep - 2 * i);
    deep.push_back(op(i % 2 ? "odd" : "even", at, dur));
    same.push_back(op("same", at, dur));
  }
  const Tree tree(deep);
  REQUIRE(tree.made.events.size() == kDeep);
  CHECK(tree.made.events[kDeep - 1].parent == kDeep - 2);
  CHECK(tree.of("even") == "even< 2/300000 0/0");
  const Tree joined(same);
  REQUIRE(joined.made.events.size() == 1);
  CHECK(joined.of("same") == "same< 300000/300000 0/0");
}

TEST_CASE("function events: children that end after their parent make its self time negative") {
  // Calls of another thread that belong to this one's operator may overlap its own children.
  const Tree tree({op("a", "0", "10", 1), op("b", "0", "10", 2), op("c", "0", "0", 3)});
  CHECK(tree.of("a") == "a< 0/10 0/0");
  int64_t sum = 0;
  for (const FunctionEvent& e : tree.made.events) sum += e.self_host_ns;
  CHECK(sum == 10'000);
}
