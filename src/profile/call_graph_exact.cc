// Builds the default call graph from the reader's facts: nesting, owners, parents of Python frames, forward links.
#include "profile/call_graph.h"

namespace stageline {
namespace {

// Returns true for rows that call or are called: those of the host, and device work. Waits and marks of devices,
// annotations drawn on devices, and the bar of the whole profile are neither.
bool is_node(const TorchRow& row, const Lane& lane) {
  if (row.on_device) return true;
  return lane.kind != LaneKind::kDeviceStream && (is_host(row.category) || row.category == Category::kOther);
}

class Builder {
 public:
  explicit Builder(const TorchRank& rank) : rank_(rank), s_(rank.part->slices), row_of_(s_.size(), -1) {
    const size_t n = rank.rows.size();
    graph_.parent.assign(n, CallGraph::kAbsent);
    graph_.edge.assign(n, CallEdge::kNone);
    for (size_t i = 0; i < n; ++i)
      if (is_node(rank.rows[i], rank.part->lanes[rank.rows[i].lane])) {
        row_of_[rank.rows[i].slice] = static_cast<int32_t>(i);
        graph_.parent[i] = CallGraph::kTop;
        graph_.edge[i] = rank.rows[i].on_device ? CallEdge::kLaunch : CallEdge::kCall;
      }
  }

  CallGraph build() {
    attach_calls();
    attach_backward();
    attach_device_work();
    CallChildren children(rank_.rows.size());
    std::vector<int32_t> tops;
    for (uint32_t i = 0; i < rank_.rows.size(); ++i) {
      if (graph_.parent[i] == CallGraph::kTop) tops.push_back(i);
      if (graph_.parent[i] >= 0) children.add(graph_.parent[i], i);
    }
    finish_call_graph(rank_, children, tops, graph_);
    sum_self();
    return std::move(graph_);
  }

 private:
  const TorchRow& row(int32_t i) const { return rank_.rows[i]; }
  int32_t& parent(int32_t i) { return graph_.parent[i]; }

  // Returns the nearest of a slice and its enclosing slices that is among the rows.
  int32_t kept_at(uint32_t slice) const {
    while (slice != kNoSliceIndex && row_of_[slice] < 0) slice = s_.parent[slice];
    return slice == kNoSliceIndex ? -1 : row_of_[slice];
  }
  int32_t top_of(int32_t i) const {
    while (graph_.parent[i] >= 0) i = graph_.parent[i];
    return i;
  }

  void attach_calls() {
    for (size_t i = 0; i < rank_.rows.size(); ++i) {
      if (graph_.edge[i] != CallEdge::kCall) continue;
      const uint32_t slice = rank_.rows[i].slice;
      if (s_.parent[slice] != kNoSliceIndex)
        if (const int32_t up = kept_at(s_.parent[slice]); up >= 0) graph_.parent[i] = up;
    }
    // Some frames have no caller on their thread. Their parent must start earlier, so that no circle can form.
    for (const PythonFact& fact : rank_.part->python_parents) {
      const int32_t frame = row_of_[fact.slice], up = row_of_[fact.parent];
      if (frame < 0 || up < 0 || parent(frame) != CallGraph::kTop || row(up).start_ns >= row(frame).start_ns) continue;
      parent(frame) = up;
    }
  }

  // The arrow ends at the first backward operator, but the engine's whole call around it is put under the forward
  // operator. Backward work on the forward's thread is within the call of backward() already.
  void attach_backward() {
    for (const SliceLink& link : rank_.part->slice_links) {
      if (link.kind != SliceLinkKind::kForwardBackward) continue;
      const int32_t forward = kept_at(link.from), inner = kept_at(link.to);
      if (forward < 0 || inner < 0) continue;
      const int32_t backward = top_of(inner);
      if (graph_.edge[backward] != CallEdge::kCall || row(backward).lane == row(forward).lane ||
          row(forward).start_ns >= row(backward).start_ns)
        continue;
      parent(backward) = forward;
      graph_.edge[backward] = CallEdge::kForward;
    }
  }

  // Puts device work under the launch call if its owning operator made that, else under the operator that the profiler
  // names.
  void attach_device_work() {
    for (size_t i = 0; i < rank_.rows.size(); ++i) {
      if (graph_.edge[i] != CallEdge::kLaunch) continue;
      const TorchRow& work = rank_.rows[i];
      const int32_t owner = s_.parent[work.slice] == kNoSliceIndex ? -1 : kept_at(s_.parent[work.slice]);
      // Work that is drawn on a host thread may enclose its own launch, so there only the owner counts.
      const bool on_stream = rank_.part->lanes[work.lane].kind == LaneKind::kDeviceStream;
      const int32_t launch = on_stream && work.partner >= 0 && graph_.has(work.partner) ? work.partner : -1;
      int32_t at = launch;
      while (at >= 0 && at != owner && graph_.edge[at] == CallEdge::kCall) at = parent(at);
      if (launch >= 0 && (owner < 0 || at == owner)) graph_.parent[i] = launch;
      else if (owner >= 0) graph_.parent[i] = owner;
    }
  }

  void sum_self() {
    const size_t n = rank_.rows.size();
    graph_.self_ns.assign(n, 0);
    graph_.backward_kernel_ns.assign(n, 0);
    for (size_t k = graph_.preorder.size(); k-- > 0;) {
      const size_t i = graph_.preorder[k];
      graph_.self_ns[i] += rank_.rows[i].dur_ns;
      const int32_t up = graph_.parent[i];
      if (up < 0) continue;
      const size_t u = up;
      if (graph_.edge[i] == CallEdge::kCall && rank_.rows[i].lane == rank_.rows[u].lane)
        graph_.self_ns[u] -= rank_.rows[i].dur_ns;
      graph_.backward_kernel_ns[u] +=
          graph_.backward_kernel_ns[i] + (graph_.edge[i] == CallEdge::kForward ? graph_.kernel_ns[i] : 0);
    }
  }

  const TorchRank& rank_;
  const Slices& s_;
  std::vector<int32_t> row_of_;  // slice → row; −1 when it is not a node
  CallGraph graph_;
};

}  // namespace

CallGraph exact_call_graph(const TorchRank& rank) { return Builder(rank).build(); }

}  // namespace stageline
