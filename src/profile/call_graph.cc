#include "profile/call_graph.h"

#include <cstdlib>

#include "base/tim_sort.h"
#include "model/numpy_order.h"

namespace stageline {
namespace {

// A row opens or closes. The stack builds the tree from the sequence of these. An opening is put under the top and
// becomes the top; a closing removes the top, even if it belongs to another row.
struct Edge {
  int64_t time_ns, dur_ns;
  uint32_t index;
  bool opens;
};

int sign(bool less) { return less ? -1 : 1; }

// HTA's order for the call stack compares a row's own opening first, then the time, then the kinds of the two edges. It
// is not transitive. Where one row ends and another starts, a zero-length row between them comes after the first and
// before the second. The second, however, comes after the first's end only if those two are compared.
int stack_order(const Edge& x, const Edge& y) {
  if (x.index == y.index) return sign(x.opens);
  if (x.time_ns != y.time_ns) return sign(x.time_ns < y.time_ns);
  if (x.opens == y.opens) {
    if (x.dur_ns != y.dur_ns) return sign(x.opens ? x.dur_ns > y.dur_ns : x.dur_ns < y.dur_ns);
    return sign(x.opens ? x.index < y.index : x.index > y.index);
  }
  if (x.dur_ns > 0 && y.dur_ns > 0) return sign(!x.opens);
  if (x.dur_ns == 0 && y.dur_ns == 0) return sign(x.index < y.index);
  return sign(x.opens);
}

// HTA's order for the call graph. Sets `fails` where HTA raises an exception.
int graph_order(const Edge& x, const Edge& y, bool& fails) {
  if (x.time_ns != y.time_ns) return sign(x.time_ns < y.time_ns);
  if (x.index == y.index) return sign(x.opens);
  const int64_t a = x.dur_ns, b = y.dur_ns;
  if (a == 0 || b == 0) {
    if (a == 0 && b > 0) return sign(!y.opens);
    if (a > 0 && b == 0) return sign(x.opens);
    if (a != 0 || b != 0) {
      fails = true;
      return 1;
    }
    if (x.opens != y.opens) return sign(x.opens);
    return sign(x.opens ? x.index < y.index : x.index > y.index);
  }
  if (x.opens != y.opens) return sign(!x.opens);
  if (a != b) return sign(x.opens ? a > b : a < b);
  return sign(x.opens ? x.index < y.index : x.index > y.index);
}

template <class RowOf>
void nest(const std::vector<Edge>& edges, RowOf row_of, std::vector<int32_t>& parent, std::vector<int32_t>& preorder) {
  std::vector<int32_t> stack;
  for (const Edge& edge : edges) {
    if (edge.opens) {
      const int32_t row = row_of(edge.index);
      int32_t& up = parent[row];
      if (up == CallGraph::kAbsent) {
        up = stack.empty() ? CallGraph::kTop : stack.back();
        preorder.push_back(row);
      }
      stack.push_back(row);
    } else if (!stack.empty()) {
      stack.pop_back();
    }
  }
}

bool thread_before(const Lane& a, std::string_view a_tid, const Lane& b, std::string_view b_tid) {
  const auto compare = [](std::string_view p, std::string_view q) {
    const auto x = parse_int(p), y = parse_int(q);
    if (x && y) return *x == *y ? 0 : *x < *y ? -1 : 1;
    if (x || y) return x ? -1 : 1;
    return p.compare(q);
  };
  const int by_pid = compare(a.pid, b.pid);
  return by_pid != 0 ? by_pid < 0 : compare(a_tid, b_tid) < 0;
}

// ---- HTA's newer builder --------------------------------------------------------------------------------

struct Root {  // HTA's node of a thread; threads with the same |tid| share it
  int64_t id = 0;
  int threads = 0;
  enum class Kind : uint8_t { kNone, kMain, kBackward } kind = Kind::kNone;
  std::vector<int32_t> top;
  std::vector<std::vector<int32_t>> rows;  // for each of its threads
};

enum NameFlags : uint8_t { kStepName = 1, kAutogradName = 2, kBackwardMark = 4 };

std::vector<uint8_t> flags_of_names(const TorchRun& run) {
  std::vector<uint8_t> flags(run.trace->names.size());
  for (StringId id = 0; id < flags.size(); ++id) {
    const std::string_view name = run.trace->names.text(id);
    if (name.starts_with("ProfilerStep#")) flags[id] |= kStepName;
    if (name.starts_with("## backward ##")) flags[id] |= kBackwardMark;
    if (name.find("autograd::") != std::string_view::npos) flags[id] |= kAutogradName;
  }
  return flags;
}

// Moves backward operators that lie within a "## backward ##" (or else ProfilerStep#) row of the main thread under that
// row.
void move_backward(const TorchRank& rank, const std::vector<uint8_t>& flags, Root& main, Root& backward,
                   CallChildren& children, std::vector<int32_t>& parent) {
  const auto row_at = [&](int32_t row) -> const TorchRow& { return rank.rows[row]; };
  for (const uint8_t wanted : {kBackwardMark, kStepName}) {
    std::vector<int32_t> marks;
    for (const auto& rows : main.rows)
      for (const int32_t row : rows)
        if (flags[row_at(row).name] & wanted) marks.push_back(row);
    for (const int32_t mark : marks) {
      const TorchRow& around = row_at(mark);
      std::erase_if(backward.top, [&](int32_t row) {
        const TorchRow& inner = row_at(row);
        if (inner.start_ns < around.start_ns || inner.end_ns() > around.end_ns()) return false;
        parent[row] = mark;
        children.add(mark, row);
        return true;
      });
    }
    if (!marks.empty()) return;
  }
}

// Returns the beginnings and ends of a thread's host rows in HTA's order. Errors: kBadInput where HTA cannot sort them.
Result<std::vector<Edge>> hta_edges(const TorchRank& rank, const std::vector<int32_t>& rows) {
  std::vector<Edge> edges;
  for (const bool opens : {true, false})
    for (const int32_t i : rows) {
      const TorchRow& row = rank.rows[i];
      if (row.stream == -1) edges.push_back({opens ? row.start_ns : row.end_ns(), row.dur_ns, row.index, opens});
    }
  // HTA sorts by time first, so rows with equal times are compared in an order of their own.
  sort_as_numpy(edges, &Edge::time_ns);
  bool fails = false;
  tim_sort(edges, [&](const Edge& x, const Edge& y) { return graph_order(x, y, fails) < 0; });
  if (fails)
    return make_error(
        ErrorCode::kBadInput, "ValueError: Unexpected case: an event of negative duration beside one of zero duration",
        "HTA's rounding makes negative durations and its call graph cannot sort them; without --compat hta "
        "times stay exact",
        {rank.part->source});
  return edges;
}

// Returns the kind of a thread by the names of its rows.
Root::Kind kind_of(const TorchRank& rank, const std::vector<int32_t>& rows, const std::vector<uint8_t>& flags) {
  uint8_t seen = 0;
  for (const int32_t i : rows) seen |= flags[rank.rows[i].name];
  return seen & kStepName ? Root::Kind::kMain : seen & kAutogradName ? Root::Kind::kBackward : Root::Kind::kNone;
}

// Puts device rows under their launches.
void add_device_rows(const TorchRank& rank, const std::vector<bool>& counts, CallChildren& children, CallGraph& graph) {
  for (const TorchRow& row : rank.rows) {
    if (row.stream <= 0 || row.partner < 0 || !counts[row.partner]) continue;
    const int32_t node = rank.row_at(row.index);
    if (graph.parent[node] != CallGraph::kAbsent) continue;
    graph.parent[node] = row.partner;
    graph.edge[node] = CallEdge::kLaunch;
    children.add(row.partner, node);
  }
}

// Returns the root of a kind if one thread alone has it.
Root* only_one(std::vector<Root>& roots, Root::Kind kind) {
  Root* found = nullptr;
  int threads = 0;
  for (Root& root : roots)
    if (root.kind == kind) found = &root, threads += root.threads;
  return threads == 1 ? found : nullptr;
}

}  // namespace

std::vector<ThreadRows> rows_by_thread(const TorchRank& rank, std::string_view moved, std::string_view into) {
  const std::vector<Lane>& lanes = rank.part->lanes;
  const auto tid = [&](uint16_t lane) -> std::string_view {
    return !moved.empty() && lanes[lane].tid == moved ? into : std::string_view(lanes[lane].tid);
  };
  std::vector<uint32_t> count(lanes.size());
  for (const TorchRow& row : rank.rows) ++count[row.lane];
  std::vector<uint16_t> order;
  for (size_t l = 0; l < lanes.size(); ++l)
    if (count[l] > 0) order.push_back(static_cast<uint16_t>(l));
  const auto before = [&](uint16_t a, uint16_t b) { return thread_before(lanes[a], tid(a), lanes[b], tid(b)); };
  sort_stably(order, before);
  std::vector<ThreadRows> threads;
  std::vector<size_t> thread_of(lanes.size());
  for (const uint16_t lane : order) {
    if (threads.empty() || before(threads.back().lane, lane)) threads.push_back({lane, {}});
    thread_of[lane] = threads.size() - 1;
  }
  for (size_t i = 0; i < rank.rows.size(); ++i)
    threads[thread_of[rank.rows[i].lane]].rows.push_back(static_cast<int32_t>(i));
  return threads;
}

StackDevice stack_device(const TorchRank& rank, ThreadRows& thread) {
  const auto stream = [&](int32_t row) { return rank.rows[row].stream; };
  bool above = false, below = true;
  for (const int32_t row : thread.rows) {
    above |= stream(row) > 0;
    below &= stream(row) < 0;
  }
  if (above) {
    std::erase_if(thread.rows, [&](int32_t row) { return stream(row) <= 0; });
    return StackDevice::kDevice;
  }
  return below ? StackDevice::kHost : StackDevice::kMixed;
}

void nest_call_stack(const TorchRank& rank, const std::vector<int32_t>& rows, std::vector<int32_t>& parent,
                     std::vector<int32_t>& preorder) {
  std::vector<Edge> edges;
  edges.reserve(2 * rows.size());
  for (const int32_t i : rows) {
    const TorchRow& row = rank.rows[i];
    const int64_t dur = std::max<int64_t>(row.dur_ns, 0);
    edges.push_back({row.start_ns, dur, row.index, true});
    edges.push_back({row.start_ns + dur, dur, row.index, false});
  }
  tim_sort(edges, [](const Edge& x, const Edge& y) { return stack_order(x, y) < 0; });
  nest(edges, [&](uint32_t index) { return rank.row_at(index); }, parent, preorder);
}

CallGraph::Range CallGraph::subtree(int32_t row) const {
  const size_t i = row;
  if (!has(row) || position[i] < 0) return {nullptr, nullptr};
  const int32_t* first = preorder.data() + position[i];
  return {first, first + subtree_size[i]};
}

CallGraph hta_call_stack(const TorchRank& rank) {
  CallGraph graph;
  graph.parent.assign(rank.rows.size(), CallGraph::kAbsent);
  graph.depth.assign(rank.rows.size(), CallGraph::kNoDepth);
  for (ThreadRows& thread : rows_by_thread(rank)) {
    if (stack_device(rank, thread) == StackDevice::kDevice)
      for (const int32_t row : thread.rows) graph.depth[row] = -1;
    else nest_call_stack(rank, thread.rows, graph.parent, graph.preorder);
  }
  for (const int32_t row : graph.preorder) {
    const int32_t up = graph.parent[row];
    graph.depth[row] = up < 0 ? 0 : graph.depth[up] + 1;
  }
  return graph;
}

void CallChildren::add(int32_t parent, int32_t child) {
  int32_t& tail = last[parent];
  (tail < 0 ? first[parent] : next[tail]) = child;
  tail = child;
  next[child] = -1;
}

void finish_call_graph(const TorchRank& rank, const CallChildren& children, const std::vector<int32_t>& tops,
                       CallGraph& graph) {
  const size_t n = rank.rows.size();
  graph.depth.assign(n, -1);
  graph.position.assign(n, -1);
  graph.subtree_size.assign(n, 0);
  graph.height.assign(n, -1);
  graph.kernel_count.assign(n, 0);
  graph.kernel_ns.assign(n, 0);
  graph.first_kernel_ns.assign(n, CallGraph::kNullTime);
  graph.last_kernel_ns.assign(n, CallGraph::kNullTime);
  for (const int32_t top : tops) {
    for (int32_t at = top; at >= 0;) {
      const size_t i = at;
      const int32_t up = at == top ? -1 : graph.parent[i];
      graph.depth[i] = up < 0 ? 0 : graph.depth[up] + 1;
      graph.position[i] = static_cast<int32_t>(graph.preorder.size());
      graph.preorder.push_back(at);
      if (children.first[i] >= 0) {
        at = children.first[i];
        continue;
      }
      while (at != top && children.next[at] < 0) at = graph.parent[at];
      at = at == top ? -1 : children.next[at];
    }
  }
  for (size_t k = graph.preorder.size(); k-- > 0;) {
    const size_t i = graph.preorder[k];
    const TorchRow& row = rank.rows[i];
    ++graph.subtree_size[i];
    const bool leaf_of_device = graph.edge[i] == CallEdge::kLaunch;
    if (leaf_of_device) {
      graph.height[i] = 0;
      graph.kernel_count[i] = 1;
      graph.kernel_ns[i] = row.dur_ns;
      graph.first_kernel_ns[i] = row.start_ns;
      graph.last_kernel_ns[i] = row.end_ns();
    } else {
      graph.height[i] = std::max(graph.height[i], 1);
    }
    if (graph.depth[i] == 0) continue;
    const size_t up = graph.parent[i];
    graph.subtree_size[up] += graph.subtree_size[i];
    graph.height[up] = std::max(graph.height[up], graph.height[i] + 1);
    if (graph.edge[i] == CallEdge::kForward || graph.kernel_count[i] == 0) continue;
    graph.kernel_count[up] += graph.kernel_count[i];
    graph.kernel_ns[up] += graph.kernel_ns[i];
    const bool first = graph.first_kernel_ns[up] == CallGraph::kNullTime;
    graph.first_kernel_ns[up] =
        first ? graph.first_kernel_ns[i] : std::min(graph.first_kernel_ns[up], graph.first_kernel_ns[i]);
    graph.last_kernel_ns[up] = std::max(graph.last_kernel_ns[up], graph.last_kernel_ns[i]);
  }
}

Result<CallGraph> hta_call_graph(const TorchRun& run, const TorchRank& rank) {
  CallGraph graph;
  const size_t n = rank.rows.size();
  graph.parent.assign(n, CallGraph::kAbsent);
  graph.edge.assign(n, CallEdge::kNone);
  graph.thread_root.assign(n, 0);
  CallChildren children(n);
  std::vector<Root> roots;
  const std::vector<uint8_t> flags = flags_of_names(run);
  std::vector<bool> counts(n);  // rows whose threads count
  for (ThreadRows& thread : rows_by_thread(rank)) {
    const Lane& lane = rank.part->lanes[thread.lane];
    const bool device = std::ranges::all_of(thread.rows, [&](int32_t i) { return rank.rows[i].stream > 0; });
    if (device || lane.pid == "0" || lane.tid == "0") continue;
    const int64_t id = -std::abs(parse_int(lane.tid).value_or(0));
    auto root = std::ranges::find_if(roots, [&](const Root& r) { return r.id == id; });
    if (root == roots.end()) root = roots.insert(roots.end(), Root{.id = id, .top = {}, .rows = {}});
    ++root->threads;
    root->kind = kind_of(rank, thread.rows, flags);
    for (const int32_t i : thread.rows) counts[i] = true;
    TRY(edges, hta_edges(rank, thread.rows));
    std::vector<int32_t> placed;
    nest(*edges, [&](uint32_t index) { return rank.row_at(index); }, graph.parent, placed);
    for (const int32_t i : placed) {
      graph.edge[i] = CallEdge::kCall;
      const int32_t up = graph.parent[i];
      if (up < 0) {
        graph.thread_root[i] = id;
        root->top.push_back(i);
      } else {
        children.add(up, i);
      }
    }
    root->rows.push_back(std::move(thread.rows));
  }
  add_device_rows(rank, counts, children, graph);
  Root* main = only_one(roots, Root::Kind::kMain);
  Root* backward = only_one(roots, Root::Kind::kBackward);
  if (main && backward) move_backward(rank, flags, *main, *backward, children, graph.parent);
  std::vector<int32_t> tops;
  for (const Root& root : roots) tops.insert(tops.end(), root.top.begin(), root.top.end());
  finish_call_graph(rank, children, tops, graph);
  return graph;
}

}  // namespace stageline
