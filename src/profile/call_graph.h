// The tree of calls over the rows of one rank, made in one of three ways:
//
//   default           one graph: the enclosing slice of a thread, a Python frame's own parent where its thread
//                     holds none, device work under its operator (else its launch), the first backward operator
//                     of a thread under the forward operator it belongs to
//   hta call stack    HTA's older builder (hta.common.call_stack), which its critical path uses
//   hta call graph    HTA's newer builder (hta.common.trace_call_graph), which its sequences use
//
// Definitions, and what is wrong with HTA's two: docs/analyses/call-graph.md.
#pragma once

#include "profile/torch_view.h"

namespace stageline {

enum class CallEdge : uint8_t { kNone, kCall, kLaunch, kForward };  // how a node came under its parent

struct CallGraph {
  static constexpr int32_t kTop = -1;             // the parent of a node that has none
  static constexpr int32_t kAbsent = -2;          // the parent of a row that is not in the graph
  static constexpr int32_t kNoDepth = INT32_MIN;  // hta call stack: a row that HTA forgets

  // Indexed by row of the TorchRank. Where several rows share a file index (HTA duplicates device rows), the node is at
  // the first of them.
  std::vector<int32_t> parent, depth;  // depth: 0 for top nodes, −1 for absent rows and rows of a device, or kNoDepth
  std::vector<int32_t> preorder;       // the nodes: parents come before children, and siblings in the order of calls
  std::vector<CallEdge> edge;          // only in default mode

  // Sums over a node's own subtree, without what is under it by kForward. Empty for the call stack.
  std::vector<int32_t> height;        // 0 for device work, 1 and more for host rows, −1 for absent rows
  std::vector<int32_t> kernel_count;  // number of device rows
  std::vector<int64_t> kernel_ns;     // sum of their durations
  std::vector<int64_t> first_kernel_ns, last_kernel_ns;  // first start and last end; kNullTime when there are none
  std::vector<int64_t> self_ns;             // default mode: duration without the calls below it on the same thread
  std::vector<int64_t> backward_kernel_ns;  // default mode: kernel time of what is under it by kForward
  static constexpr int64_t kNullTime = INT64_MIN;

  // For each row, in the mode of HTA's call graph: −|thread id| of a top node's thread, which HTA calls the node's
  // parent; 0 for all other rows.
  std::vector<int64_t> thread_root;

  bool has(int32_t row) const { return row >= 0 && parent[row] != kAbsent; }
  struct Range {
    const int32_t *first, *last;
    const int32_t* begin() const { return first; }
    const int32_t* end() const { return last; }
  };
  // Returns the rows of the subtree of `row`, itself first; they are a contiguous range of preorder. O(1) after
  // finish().
  Range subtree(int32_t row) const;
  // For each row: its place in preorder, and the number of nodes in its subtree.
  std::vector<int32_t> position, subtree_size;
};

CallGraph exact_call_graph(const TorchRank& rank);

// Builds HTA's call graph. Errors: kBadInput "ValueError: Unexpected case …" where HTA raises it (for a negative and a
// zero duration at the same time).
Result<CallGraph> hta_call_graph(const TorchRun& run, const TorchRank& rank);

// Builds HTA's call stack; depth is −1 for rows of device streams. Rows that HTA leaves without a value stay kAbsent.
CallGraph hta_call_stack(const TorchRank& rank);

// ---- for code that builds on the call stack -----------------------------------------------------------

struct ThreadRows {
  uint16_t lane = 0;  // one of the thread's lanes
  std::vector<int32_t> rows;
};
// Returns threads in HTA's order of (pid, tid), numbers before texts. Rows of the thread `moved` are put among those of
// `into`. Rows are in table order; threads without rows are left out.
std::vector<ThreadRows> rows_by_thread(const TorchRank& rank, std::string_view moved = {}, std::string_view into = {});

// HTA's rule for a thread of its call stack: if any row is on a stream above 0, only such rows count.
enum class StackDevice : uint8_t { kHost, kDevice, kMixed };
StackDevice stack_device(const TorchRank& rank, ThreadRows& thread);

// Nests `rows` in the order of the call stack: fills parent (by row, kAbsent before) and appends to preorder.
void nest_call_stack(const TorchRank& rank, const std::vector<int32_t>& rows, std::vector<int32_t>& parent,
                     std::vector<int32_t>& preorder);

// Lists of children; siblings are in the order of calls.
struct CallChildren {
  explicit CallChildren(size_t rows) : first(rows, -1), last(rows, -1), next(rows, -1) {}
  void add(int32_t parent, int32_t child);
  std::vector<int32_t> first, last, next;
};
// Fills preorder, depths, places and sums of everything under `tops`; expects parent and edge.
void finish_call_graph(const TorchRank& rank, const CallChildren& children, const std::vector<int32_t>& tops,
                       CallGraph& graph);

}  // namespace stageline
