// What a rank's calls add up to by call path: equal paths are one node, whenever they ran.
//
//   slices    train.py(4): step ─ aten::linear ─ aten::addmm ─ cudaLaunchKernel ─ gemm        (twice, on any thread)
//   tree      train.py(4): step › aten::linear › aten::addmm › cudaLaunchKernel › gemm        calls 2, times added up
//
// Who is above a slice:
//   1. the slice that encloses it on its thread, or as python_callers() has it: of a Python frame its own Python
//   parent,
//      of an operator at the top of a thread the frame that is open on its forward thread;
//   2. device work stands under the call that launched it, else under its operator;
//   3. a backward operator stands where the forward operator of its sequence number stands, as export-stacks has it,
//      so that a line of the model has the price of both passes; "autograd::engine::…" above it keeps it apart;
//   4. what nothing is above stands at the top.
//
// Host time is a slice's duration without what it encloses on its thread, so every moment of a thread counts once, in
// one node, wherever rules 1 and 3 put that. Device time is the duration of kernels, copies and memsets, of streams
// side by side each. "ProfilerStep#3" counts as "ProfilerStep*", names of built-ins lose their address.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "profile/function_events.h"

namespace stageline {

enum class FrameKind : uint8_t {
  kRoot,           // node 0 alone
  kPython,         // a Python function
  kOperator,       // of the framework
  kAnnotation,     // a range that the program named
  kCall,           // of the device's runtime or driver, or the profiler's own work
  kDevice,         // kernel that computes
  kOther,          // what the profiler's format does not say more of
  kCommunication,  // kernel that sends or receives
  kMemory,         // copy, memset
};
inline constexpr size_t kFrameKindCount = static_cast<size_t>(FrameKind::kMemory) + 1;

struct CallTree {
  struct Node {
    uint32_t parent = 0;  // stands before this node; of node 0 itself
    StringId frame = 0;   // into `frames`
    FrameKind kind = FrameKind::kRoot;
  };
  std::vector<Node> nodes = {Node{}};  // nodes[0] has no frame
  // By node, of the node itself without what is below it.
  std::vector<int64_t> host_ns = {0}, device_ns = {0};
  std::vector<int64_t> calls = {0};
  StringPool frames;
  int64_t steps = 0;  // profiler steps of the rank that were looked at
};

// Of the slices that the trace's --steps and --range leave. O(slices) time; 17 B a slice while it is made.
CallTree call_tree(const Trace& trace, const Part& part, const FunctionNames& names);

}  // namespace stageline
