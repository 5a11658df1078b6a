// Who called whom, over the rows of one rank.
//
//   default           one graph: the enclosing slice of a thread, a Python frame's own parent where its thread
//                     holds none, device work under its operator (else its launch), the first backward operator
//                     of a thread under the forward operator it belongs to
//   hta call stack    HTA's older builder (hta.common.call_stack), which its critical path uses
//   hta call graph    HTA's newer builder (hta.common.trace_call_graph), which its sequences use
//
// Definitions and what is wrong with the latter two: docs/analyses/call-graph.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/torch_view.h"

namespace stageline {

enum class CallEdge : uint8_t { kNone, kCall, kLaunch, kForward };  // how a node came under its parent

struct CallGraph {
  static constexpr int32_t kTop = -1;             // parent of a node that has none
  static constexpr int32_t kAbsent = -2;          // parent of a row that is not in the graph
  static constexpr int32_t kNoDepth = INT32_MIN;  // hta call stack: a row that HTA forgets

  // By row of the TorchRank; a file index that several rows share (HTA duplicates device rows) has its node at
  // the first of them.
  std::vector<int32_t> parent, depth;  // depth: 0 for top nodes, −1 absent or of a device's row, kNoDepth
  std::vector<int32_t> preorder;       // the nodes, parents before children, siblings in the order of calls
  std::vector<CallEdge> edge;          // default mode

  // Sums over a node's own subtree without what hangs by kForward; empty for the call stack.
  std::vector<int32_t> height;                           // device work 0, host 1 and up, −1 absent
  std::vector<int32_t> kernel_count;                     // device rows
  std::vector<int64_t> kernel_ns;                        // Σ their durations
  std::vector<int64_t> first_kernel_ns, last_kernel_ns;  // first start, last end; kNullTime without
  std::vector<int64_t> self_ns;             // default mode: duration without the calls below, on the same thread
  std::vector<int64_t> backward_kernel_ns;  // default mode: kernel time of what hangs below by kForward
  static constexpr int64_t kNullTime = INT64_MIN;

  // hta call graph: −|thread id| of a top node's thread, which HTA calls its parent. By row, 0 elsewhere.
  std::vector<int64_t> thread_root;

  bool has(int32_t row) const { return row >= 0 && parent[static_cast<size_t>(row)] != kAbsent; }
  // Rows of the subtree of `row` (itself first): a contiguous range of preorder. O(1) after finish().
  struct Range {
    const int32_t *first, *last;
    const int32_t* begin() const { return first; }
    const int32_t* end() const { return last; }
  };
  Range subtree(int32_t row) const;
  std::vector<int32_t> position, subtree_size;  // by row: place in preorder, nodes below and itself
};

CallGraph exact_call_graph(const TorchRank& rank);

// HTA's call graph. Errors: kBadInput "ValueError: Unexpected case …" where HTA raises it (a negative duration
// beside a zero one at the same time).
Result<CallGraph> hta_call_graph(const TorchRun& run, const TorchRank& rank);

// HTA's call stack; depth −1 for rows of device streams. Rows that HTA leaves without a value stay kAbsent.
CallGraph hta_call_stack(const TorchRank& rank);

// ---- for who builds on the call stack -----------------------------------------------------------------

// Threads in HTA's order of (pid, tid): numbers before texts. `moved` counts as `into`, which puts the rows of
// one thread among those of another. Rows in table order; threads without rows are left out.
struct ThreadRows {
  uint16_t lane = 0;  // one of the thread's
  std::vector<int32_t> rows;
};
std::vector<ThreadRows> rows_by_thread(const TorchRank& rank, std::string_view moved = {}, std::string_view into = {});

// HTA's rule for a thread of its call stack: with any row on a stream above 0 only those count.
enum class StackDevice : uint8_t { kHost, kDevice, kMixed };
StackDevice stack_device(const TorchRank& rank, ThreadRows& thread);

// Nesting of `rows` by the call stack's order: fills parent (by row, kAbsent before) and appends to preorder.
void nest_call_stack(const TorchRank& rank, const std::vector<int32_t>& rows, std::vector<int32_t>& parent,
                     std::vector<int32_t>& preorder);

// Lists of children, siblings in the order of calls.
struct CallChildren {
  explicit CallChildren(size_t rows) : first(rows, -1), last(rows, -1), next(rows, -1) {}
  void add(int32_t parent, int32_t child);
  std::vector<int32_t> first, last, next;
};
// Preorder, depths, places and sums of what `tops` lead to; parent and edge are given.
void finish_call_graph(const TorchRank& rank, const CallChildren& children, const std::vector<int32_t>& tops,
                       CallGraph& graph);

}  // namespace stageline
