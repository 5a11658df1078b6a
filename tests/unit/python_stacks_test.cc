// Frames around operators, calls and kernels, rebuilt from python_function rows.
#include "profile/python_stacks.h"

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

// "innermost < … < outermost" around the first slice of a name.
std::string around(const Trace& trace, const PythonStacks& stacks, std::string_view name) {
  const Slices& s = trace.parts[0].slices;
  for (size_t i = 0; i < s.size(); ++i) {
    if (trace.names.text(s.name_id[i]) != name) continue;
    std::string out;
    for (const std::string_view entry : stacks.entries(stacks.stack_of(i)))
      out += (out.empty() ? "" : " < ") + std::string(entry);
    return out;
  }
  return "(no slice)";
}

const char* const kBackwardCall = "<built-in method run_backward of torch._C._EngineBase object at 0x7f12ab>";

// A forward in step(), a backward on thread 2 that main's run_backward waits for, and a frame of its own there.
std::vector<std::string> training() {
  return {frame("train.py(1): <module>", 1, "0", "100", 1, "null"),
          frame("train.py(4): step", 1, "10", "30", 2, "1"),
          op("aten::linear", 1, "12", "20", autograd(7, 0)),
          op("aten::addmm", 1, "14", "10", autograd(7, 0)),
          call("cudaLaunchKernel", "16", "2", 5),
          work("gemm", "20", "5", 5),
          frame("torch/autograd/__init__.py(9): backward", 1, "49", "45", 3, "1"),
          frame(kBackwardCall, 1, "50", "40", 4, "3"),
          op("autograd::engine::evaluate_function: AddmmBackward0", 2, "52", "10", autograd(7, 1)),
          op("AddmmBackward0", 2, "53", "8", autograd(7, 1)),
          op("aten::mm", 2, "54", "5"),
          frame("hook.py(3): hook", 2, "70", "10", 5, "4"),
          op("aten::norm", 2, "72", "3"),
          R"({"ph":"s","id":1,"pid":100,"tid":1,"ts":14,"cat":"fwdbwd","name":"fwdbwd"})",
          R"({"ph":"f","id":1,"pid":100,"tid":2,"ts":53,"cat":"fwdbwd","name":"fwdbwd","bp":"e"})"};
}

}  // namespace

TEST_CASE("python stacks: nesting, launches, other threads, backward as forward") {
  const Trace trace = torch_trace(training());
  const PythonStacks stacks = python_stacks(trace, trace.parts[0]);
  const std::string step = "train.py(4): step < train.py(1): <module>";
  CHECK(around(trace, stacks, "aten::linear") == step);
  CHECK(around(trace, stacks, "aten::addmm") == step);
  CHECK(around(trace, stacks, "cudaLaunchKernel") == step);
  CHECK(around(trace, stacks, "gemm") == step);
  CHECK(around(trace, stacks, "train.py(4): step") == "train.py(1): <module>");
  CHECK(around(trace, stacks, "train.py(1): <module>").empty());
  // The wrapper runs where run_backward waits; the node and what it calls belong to the forward's line.
  const std::string waits =
      std::string(kBackwardCall) + " < torch/autograd/__init__.py(9): backward < train.py(1): <module>";
  CHECK(around(trace, stacks, "autograd::engine::evaluate_function: AddmmBackward0") == waits);
  CHECK(around(trace, stacks, "AddmmBackward0") == step);
  CHECK(around(trace, stacks, "aten::mm") == step);
  CHECK(around(trace, stacks, "hook.py(3): hook") == waits);
  CHECK(around(trace, stacks, "aten::norm") == "hook.py(3): hook < " + waits);
}

TEST_CASE("python stacks: backward as called, torch's dropped entries, cut addresses") {
  const Trace trace = torch_trace(training());
  PythonStackOptions options;
  options.backward = BackwardFrames::kCaller;
  options.drop_torch_entries = true;
  options.cut_addresses = true;
  const PythonStacks stacks = python_stacks(trace, trace.parts[0], options);
  CHECK(around(trace, stacks, "aten::mm") ==
        "<built-in method run_backward of torch._C._EngineBase object> < train.py(1): <module>");
  CHECK(without_address("<f at 0x1f> at 0x at 0xA") == "<f> at 0x");
  CHECK(without_address("f at 0xg") == "f at 0xg");
  CHECK(drops_stack_entry("torch/autograd/__init__.py(1): _make_grads"));
  CHECK_FALSE(drops_stack_entry("torch/autograd/function.py(1): backward"));
}

TEST_CASE("python stacks: the n innermost frames group whatever is outside them") {
  const Trace trace =
      torch_trace({frame("a", 1, "0", "50", 1, "null"), frame("b", 1, "1", "20", 2, "1"),
                   frame("c", 1, "2", "10", 3, "2"), op("x", 1, "3", "1"), frame("d", 1, "60", "40", 4, "null"),
                   frame("b", 1, "61", "20", 5, "4"), frame("c", 1, "62", "10", 6, "5"), op("y", 1, "63", "1"),
                   frame("c", 1, "110", "10", 7, "null"), op("z", 1, "111", "1")});
  const PythonStacks stacks = python_stacks(trace, trace.parts[0]);
  const auto node = [&](std::string_view name) {
    const Slices& s = trace.parts[0].slices;
    for (size_t i = 0; i < s.size(); ++i)
      if (trace.names.text(s.name_id[i]) == name) return stacks.stack_of(i);
    return UINT32_MAX;
  };
  const auto equal = [&](size_t n, const char* p, const char* q) {
    const std::vector<uint32_t> groups = stacks.groups_of_innermost(n);
    return groups[node(p)] == groups[node(q)];
  };
  CHECK(stacks.nodes().size() == 8);  // the empty one, a, ab, abc, d, db, dbc, c
  CHECK(equal(0, "x", "z"));
  CHECK(equal(1, "x", "y"));
  CHECK(equal(1, "x", "z"));
  CHECK(equal(2, "x", "y"));
  CHECK_FALSE(equal(2, "x", "z"));
  CHECK_FALSE(equal(3, "x", "y"));
  CHECK_FALSE(equal(100, "x", "y"));
  CHECK(stacks.groups_of_innermost(3)[node("z")] == node("z"));
}

TEST_CASE("python stacks: recorded ones, and their backward") {
  std::vector<std::string> events = training();
  for (std::string& event : events) {
    const auto add = [&](const char* name, const char* text) {
      if (event.find(std::string("\"name\":\"") + name + "\"") == std::string::npos) return;
      event.insert(event.size() - 2, std::string(event[event.size() - 3] == '{' ? "" : ",") + text);
    };
    add("aten::linear", R"("Call stack":"m.py(2): f;m.py(9): main")");
    add("AddmmBackward0", R"("Call stack":"other.py(1): g")");
  }
  const Trace trace = torch_trace(events);
  if (trace.parts[0].stacks.empty()) {
    MESSAGE("the reader fills no stacks yet");
    return;
  }
  const PythonStacks stacks = recorded_stacks(trace, trace.parts[0]);
  CHECK(around(trace, stacks, "aten::linear") == "m.py(2): f < m.py(9): main");
  CHECK(around(trace, stacks, "AddmmBackward0") == "m.py(2): f < m.py(9): main");
  CHECK(around(trace, stacks, "aten::addmm").empty());
}

TEST_CASE("python stacks: circles of parents and very deep frames end") {
  // 1 says its parent is 2, which says it is 1; both on threads of their own.
  const Trace circle = torch_trace({frame("a", 1, "0", "10", 1, "2"), frame("b", 2, "0", "10", 2, "1"),
                                    op("x", 1, "3", "1"), frame("self", 3, "0", "9", 3, "3"), op("y", 3, "1", "1")});
  const PythonStacks cut = python_stacks(circle, circle.parts[0]);
  CHECK(around(circle, cut, "x") == "a < b");
  CHECK(around(circle, cut, "y") == "self");

  constexpr int kDeep = 100'000;
  std::vector<std::string> events;
  for (int i = 0; i < kDeep; ++i)
    events.push_back(frame("f" + std::to_string(i % 3), 1, std::to_string(i), std::to_string(2 * (kDeep - i)), i + 1,
                           i == 0 ? "null" : std::to_string(i)));
  events.push_back(op("x", 1, std::to_string(kDeep), "1"));
  const Trace deep = torch_trace(events);
  const PythonStacks stacks = python_stacks(deep, deep.parts[0]);
  CHECK(stacks.nodes().size() == kDeep + 1);
  CHECK(stacks.nodes().back().depth == kDeep);
  CHECK(stacks.groups_of_innermost(3)[kDeep] == stacks.groups_of_innermost(3)[kDeep - 3]);
}

TEST_CASE("python stacks: of a frame longer than any name both ends are kept") {
  const std::string text = "head é" + std::string(3 * PythonStacks::kMaxFrameBytes, 'x') + "é tail";
  const std::string cut = shortened_frame(text);
  CHECK(cut.size() <= PythonStacks::kMaxFrameBytes + 3);
  CHECK(cut.starts_with("head é"));
  CHECK(cut.ends_with("é tail"));
  const Trace trace = torch_trace({torch_event("python_function", text, 100, 1, "0", "10", "\"Python id\": 1"),
                                   torch_event("cpu_op", "aten::mm", 100, 1, "2", "3", "\"External id\": 1")});
  const std::vector<Table> tables = ask(trace, "operators", {.options = {{"group-by-stack-n", "5"}}});
  CHECK(cell(tables[0], "stack", "name", "aten::mm") == cut);
}
