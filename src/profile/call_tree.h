// The call tree of a rank: what its calls add up to by call path. Equal paths are one node, whenever they ran.
//
//   slices    train.py(4): step ─ aten::linear ─ aten::addmm ─ cudaLaunchKernel ─ gemm        (twice, on any thread)
//   tree      train.py(4): step › aten::linear › aten::addmm › cudaLaunchKernel › gemm        calls 2, times added up
//
// The caller of a slice is:
//   1. the slice that encloses it on its thread, or as python_callers() has it: for a Python frame its own Python
//      parent, for an operator at the top of a thread the frame that is open on its forward thread;
//   2. device work is placed under the call that launched it, else under its operator;
//   3. a backward operator stands where the forward operator of its sequence number stands, as export-stacks has it,
//      so that a line of the model has the price of both passes; "autograd::engine::…" above it keeps it apart;
//   4. a slice without a caller is at the top.
//
// Host time is a slice's duration without what it encloses on its thread. So every moment of a thread counts once, in
// one node, wherever rules 1 and 3 put that node. Device time is the duration of kernels, copies and memsets; work on
// streams side by side counts on each. "ProfilerStep#3" counts as "ProfilerStep*", and names of built-ins lose their
// address.
#pragma once

#include "profile/function_events.h"

namespace stageline {

enum class FrameKind : uint8_t {
  kRoot,           // only node 0
  kPython,         // a Python function
  kOperator,       // an operator of the framework
  kAnnotation,     // a range that the program named
  kCall,           // a call of the device's runtime or driver, or the profiler's own work
  kDevice,         // a kernel that computes
  kOther,          // something of which the profiler's format says no more
  kCommunication,  // a kernel that sends or receives
  kMemory,         // a copy or memset
};
inline constexpr size_t kFrameKindCount = static_cast<size_t>(FrameKind::kMemory) + 1;

struct CallTree {
  struct Node {
    uint32_t parent = 0;  // comes before this node; node 0 is its own parent
    StringId frame = 0;   // index into `frames`
    FrameKind kind = FrameKind::kRoot;
  };
  std::vector<Node> nodes = {Node{}};  // nodes[0] has no frame
  // For each node its self time, without what is below it.
  std::vector<int64_t> host_ns = {0}, device_ns = {0};
  std::vector<int64_t> calls = {0};
  StringPool frames;
  int64_t steps = 0;  // how many profiler steps of the rank were looked at
};

// Some lanes of a rank within a window: calls there count with their time within it. Device work counts where its lane
// is one of these, or where a call of these launched it.
struct CallArea {
  std::vector<bool> chosen;  // by slice of the part
  int64_t from_ns = 0, to_ns = 0;
};

// Uses the slices that the trace's --steps and --range leave, of the area if there is one. O(slices) time; 17 B a slice
// while it is being made.
CallTree call_tree(const Trace& trace, const Part& part, const FunctionNames& names, const CallArea* area = nullptr);

// Merges call trees of several ranks, of one run or two: one tree of paths, with a column of times for each rank. A
// difference between ranks or runs is then a subtraction, node by node.
//
//   rank 0   step › linear 4 ms          step ›  linear   4 ms │ 5 ms
//   rank 1   step › linear 5 ms › copy   ───▶      › copy    – │ 1 ms
//
// Two paths are equal when all names and kinds of frames on them are.
struct MergedCalls {
  struct Node {
    uint32_t parent = 0;  // comes before this node; node 0, the root, is its own parent
    StringId frame = 0;   // index into `frames`
    FrameKind kind = FrameKind::kRoot;
    bool is_rest = false;  // stands for everything below its parent that is left out, added up; it has no frame
  };
  std::vector<Node> nodes;
  StringPool frames;
  // Index: [column][node]; a node's own, without what is below it.
  std::vector<std::vector<int64_t>> host_ns, device_ns, calls;
  size_t left_out = 0;  // paths that have no node of their own and count in a rest
  // The largest share that one of them has of its column's host or device time, with all below it.
  double max_left_out = 0;
};

// Keeps at most `max_nodes` paths (nodes for the rests come on top). It keeps those with the largest share of the host
// or device time of any column, counted with everything below them; among equal shares the earlier path. O(nodes of all
// columns).
MergedCalls merge_calls(const std::vector<const CallTree*>& columns, size_t max_nodes);

}  // namespace stageline
