#include "compat/hta/hta.h"
#include "model/numpy_order.h"
#include "profile/call_graph.h"

namespace stageline {
namespace {

using Kind = PathEdgeKind;
constexpr uint32_t kNoNode = UINT32_MAX;
constexpr int64_t kNearKernelNs = 1'500'000;  // kernels further apart than this are not taken to wait for each other

class Builder {
 public:
  Builder(const TorchRun& run, const TorchRank& rank, const PathOptions& options)
      : run_(run), rank_(rank), options_(options), part_(*rank.part) {
    const auto categories = run.trace->categories;
    for (const CategoryInfo& category : categories) {
      const std::string& t = category.text;
      node_category_.push_back(t == "cpu_op" || t == "cuda_runtime" || t == "cuda_driver");
      op_or_annotation_.push_back(t == "cpu_op" || t == "user_annotation");
      sync_category_.push_back(t == "cuda_sync");
    }
    blocking_ = names_equal(run, {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery",
                                  "cudaEventSynchronize", "cudaMemcpy", "cudaMemcpyAsync"});
    lock_ = names_equal(run, {"cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync"});
    data_load_ = names_with(run, options.data_load);
  }

  PathGraph build() {
    if (!clip()) return std::move(graph_);
    graph_.found = true;
    number_nodes();
    lock_edges();
    stack_edges();
    queue_lengths();
    event_waits();
    kernel_edges();
    keep_last_of_equal_edges();
    if (check()) longest_path();
    return std::move(graph_);
  }

 private:
  const TorchRow& row(int32_t i) const { return rank_.rows[i]; }
  const TorchRow& row_of(uint32_t node) const { return row(graph_.nodes[node].row); }
  bool is_end(uint32_t node) const { return graph_.nodes[node].is_end; }
  int64_t time(uint32_t node) const { return graph_.nodes[node].time_ns; }
  uint8_t category(const TorchRow& r) const { return part_.slices.category_id[r.slice]; }
  std::string_view name(const TorchRow& r) const { return run_.name(r); }

  // Takes the host rows in the window, the device rows that one of them launched, and the wait of every stream.
  bool clip() {
    int64_t low = INT64_MAX, high = INT64_MIN;
    if (options_.annotation.empty()) {
      low = INT64_MIN;
      high = INT64_MAX;
    } else {
      const std::vector<uint8_t> named = names_with(run_, {options_.annotation});
      size_t instance = 0;
      for (const TorchRow& r : rank_.rows) {
        if (!named[r.name]) continue;
        if (instance >= options_.first && instance <= options_.last) {
          low = std::min(low, r.start_ns);
          high = std::max(high, r.end_ns());
        }
        ++instance;
      }
      if (low == INT64_MAX) return false;
    }
    std::vector<uint8_t> keep(rank_.rows.size());
    for (size_t i = 0; i < rank_.rows.size(); ++i) {
      const TorchRow& r = rank_.rows[i];
      if (r.stream != -1 || r.start_ns < low || r.start_ns > high || r.dur_ns <= 0) continue;
      keep[i] = 1;
      if (const int32_t partner = rank_.row_at(r.partner_index); partner >= 0 && row(partner).stream != -1)
        keep[partner] = 1;
    }
    for (uint32_t i = 0; i < rank_.rows.size(); ++i) {
      const TorchRow& r = rank_.rows[i];
      if (r.stream != -1 && name(r) == "Stream Wait Event") keep[i] = 1;
      // Rows that HTA has doubled count once, as the first of them.
      if (keep[i] && rank_.row_at(r.index) == static_cast<int32_t>(i)) clipped_.push_back(i);
    }
    std::ranges::sort(clipped_, [&](int32_t a, int32_t b) { return row(a).index < row(b).index; });
    return true;
  }

  void number_nodes() {
    for (const int32_t i : clipped_) {
      const TorchRow& r = row(i);
      if (!node_category_[category(r)] && !data_load_[r.name] && !(r.stream != -1 && r.partner_index >= 0)) continue;
      graph_.nodes.push_back({r.start_ns, i, false});
      graph_.nodes.push_back({r.end_ns(), i, true});
    }
    std::ranges::sort(graph_.nodes, [&](const PathNode& a, const PathNode& b) {
      if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
      if (a.row != b.row) return row(a.row).index < row(b.row).index;
      return !a.is_end && b.is_end;
    });
    start_.assign(rank_.rows.size(), kNoNode);
    end_.assign(rank_.rows.size(), kNoNode);
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) (is_end(n) ? end_ : start_)[graph_.nodes[n].row] = n;
  }

  PathEdge& add(uint32_t from, uint32_t to, Kind kind, bool free = false) {
    const bool weighs = !free && kind != Kind::kDependency && kind != Kind::kSync;
    graph_.edges.push_back({from, to, kind, false, weighs, PathEdge::kNobody});
    return graph_.edges.back();
  }
  void attribute(PathEdge& edge, int32_t parent) {
    if (edge.kind == Kind::kKernelKernel || !is_end(edge.from)) edge.row = graph_.nodes[edge.from].row;
    else edge.row = is_end(edge.to) ? graph_.nodes[edge.to].row : parent;
  }
  bool locks(uint32_t node) const { return lock_[row_of(node).name] != 0; }

  // Connects calls that take the runtime's lock, on whatever thread.
  void lock_edges() {
    std::vector<uint32_t> open;
    uint32_t last = kNoNode;
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!locks(n)) continue;
      if (!is_end(n)) {
        open.push_back(n);
      } else {
        while (!open.empty()) {
          const uint32_t from = open.back();
          open.pop_back();
          if (graph_.nodes[from].row == graph_.nodes[n].row) attribute(add(from, n, Kind::kOperator), PathEdge::kRoot);
          else add(from, n, Kind::kDependency);
        }
        if (last != kNoNode && is_end(last)) add(last, n, Kind::kDependency);
      }
      last = n;
    }
  }

  // Returns the tid of the only thread that has names with this word; "" when there is none or more than one.
  std::string_view only_thread(std::string_view word) const {
    const std::vector<uint8_t> named = names_with(run_, {std::string(word)});
    std::string_view tid;
    for (const int32_t i : clipped_) {
      const TorchRow& r = row(i);
      if (!named[r.name] || !op_or_annotation_[category(r)]) continue;
      const std::string_view here = part_.lanes[r.lane].tid;
      if (tid.empty()) tid = here;
      if (tid != here) return {};
    }
    return tid == "0" ? std::string_view{} : tid;
  }

  void stack_edges() {
    const std::string_view forward = only_thread("forward"), backward = only_thread("autograd");
    const bool one = !forward.empty() && !backward.empty() && forward != backward;
    TorchRank inside;  // the clipped rows, in file order
    inside.part = rank_.part;
    inside.rank = rank_.rank;
    for (const int32_t i : clipped_) inside.rows.push_back(row(i));
    uint32_t max = max_over<uint32_t>(inside.rows, &TorchRow::index);
    inside.row_of_index.assign(inside.rows.empty() ? 0 : max + 1, -1);
    for (uint32_t i = 0; i < inside.rows.size(); ++i) inside.row_of_index[inside.rows[i].index] = i;
    std::vector<int32_t> parent(inside.rows.size(), CallGraph::kAbsent), order;
    for (ThreadRows& thread : one ? rows_by_thread(inside, backward, forward) : rows_by_thread(inside)) {
      if (stack_device(inside, thread) != StackDevice::kHost) continue;
      order.clear();
      nest_call_stack(inside, thread.rows, parent, order);
      walk(order, parent);
    }
  }

  void walk(const std::vector<int32_t>& order, const std::vector<int32_t>& parent) {
    uint32_t last = kNoNode;
    int32_t last_parent = PathEdge::kRoot, depth = 0;
    const auto visit = [&](int32_t inner, bool out) {
      const size_t i = clipped_[inner];
      if (start_[i] == kNoNode) return;
      const uint32_t node = (out ? end_ : start_)[i];
      if (last != kNoNode && !(locks(last) && locks(node) && (!is_end(last) || is_end(node)))) {
        const Kind kind = out || depth != 0 ? Kind::kOperator : Kind::kDependency;
        PathEdge& edge = add(last, node, kind, out && blocking_[rank_.rows[i].name]);
        if (kind == Kind::kOperator) attribute(edge, last_parent);
      }
      last = node;
      const int32_t up = parent[inner];
      last_parent = up < 0 ? PathEdge::kRoot : clipped_[up];
      depth += out ? -1 : 1;
    };
    std::vector<int32_t> open;
    for (const int32_t inner : order) {
      while (!open.empty() && open.back() != parent[inner]) {
        visit(open.back(), true);
        open.pop_back();
      }
      visit(inner, false);
      open.push_back(inner);
    }
    for (; !open.empty(); open.pop_back()) visit(open.back(), true);
  }

  // Computes launches minus starts of every stream over the whole trace, right after each event.
  void queue_lengths() {
    const std::vector<uint8_t> queued = names_equal(
        run_, {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync",
               "cudaMemsetAsync", "runFunction - job_prep_and_submit_for_execution", "hipLaunchKernel",
               "hipExtModuleLaunchKernel", "hipMemsetAsync", "hipMemcpyAsync", "hipMemcpyWithStream"});
    std::vector<std::pair<int64_t, int32_t>> device;  // ordered by correlation
    for (size_t i = 0; i < rank_.rows.size(); ++i)
      if (rank_.rows[i].stream != -1) device.emplace_back(rank_.rows[i].correlation, static_cast<int32_t>(i));
    std::ranges::sort(device);
    struct Event {
      int64_t stream;
      int32_t step;
      uint32_t index;
    };
    std::vector<Event> events;
    std::vector<int64_t> times;
    const auto count = [&](const TorchRow& r, int64_t stream, int32_t step) {
      events.push_back({stream, step, r.index});
      times.push_back(r.start_ns);
    };
    std::vector<uint8_t> counted(rank_.rows.size());
    for (uint32_t i = 0; i < rank_.rows.size(); ++i) {
      const TorchRow& call = rank_.rows[i];
      if (!queued[call.name] || call.partner_index <= 0) continue;
      calls_.push_back(i);
      for (auto at = std::ranges::lower_bound(device, std::pair{call.correlation, INT32_MIN});
           at != device.end() && at->first == call.correlation; ++at) {
        count(call, row(at->second).stream, 1);
        counted[at->second] = 1;
      }
    }
    for (size_t i = 0; i < rank_.rows.size(); ++i)
      if (counted[i]) count(rank_.rows[i], rank_.rows[i].stream, -1);
    queue_.assign(rank_.row_of_index.size(), INT32_MIN);
    std::unordered_map<int64_t, int32_t> length;
    for (const uint32_t i : numpy_order(times)) queue_[events[i].index] = length[events[i].stream] += events[i].step;
  }

  // Finds which launch came before every recorded event, and which came after every wait of a stream for one.
  void event_waits() {
    std::vector<int32_t> launches;
    for (const int32_t i : calls_) {
      const int32_t kernel = rank_.row_at(row(i).partner_index);
      if (kernel >= 0 && row(kernel).stream != -1 && row(kernel).partner_index > 0) launches.push_back(i);
    }
    const auto pid_of = [&](const TorchRow& r) -> const std::string& { return part_.lanes[r.lane].pid; };
    const auto earlier = [&](int32_t a, int32_t b) {
      return row(a).start_ns != row(b).start_ns ? row(a).start_ns < row(b).start_ns : row(a).index < row(b).index;
    };
    std::ranges::sort(launches, earlier);
    using Key = std::pair<std::string, int64_t>;
    std::map<Key, std::vector<int32_t>> to_stream;  // for each process and stream of the kernel
    // For each thread of the call, and stream.
    std::map<std::pair<uint16_t, int64_t>, std::vector<int32_t>> from_thread;
    for (const int32_t i : launches) {
      const TorchRow& kernel = row(rank_.row_at(row(i).partner_index));
      to_stream[{pid_of(kernel), kernel.stream}].push_back(i);
      from_thread[{row(i).lane, kernel.stream}].push_back(i);
    }
    std::unordered_map<int64_t, Key> recorded;  // key: correlation of the record
    for (const TorchRow& r : rank_.rows)
      if (const SyncFact* sync = fact_of(part_.syncs, r.slice); sync != nullptr && sync->wait_on_stream > -1)
        recorded[sync->wait_on_record_correlation] = {pid_of(r), sync->wait_on_stream};
    const std::vector<uint8_t> records = names_equal(run_, {"cudaEventRecord"});
    const std::vector<uint8_t> waits = names_equal(run_, {"cudaStreamWaitEvent"});
    for (const TorchRow& r : rank_.rows) {
      if (records[r.name]) {
        const auto it = recorded.find(r.correlation);
        if (it == recorded.end()) continue;
        const std::vector<int32_t>& there = to_stream[it->second];
        const auto after = std::upper_bound(there.begin(), there.end(), r.start_ns,
                                            [&](int64_t at, int32_t i) { return at < row(i).start_ns; });
        before_record_[r.correlation] = after == there.begin() ? -1 : *(after - 1);
      }
      if (waits[r.name] && r.partner_index > 0) {
        const int32_t sync = rank_.row_at(r.partner_index);
        if (sync < 0 || row(sync).stream == -1 || row(sync).partner_index <= 0) continue;
        const std::vector<int32_t>& there = from_thread[{r.lane, row(sync).stream}];
        const auto next = std::lower_bound(there.begin(), there.end(), r.start_ns,
                                           [&](int32_t i, int64_t at) { return row(i).start_ns < at; });
        after_wait_[r.index] = next == there.end() ? -1 : *next;
      }
    }
  }

  void kernel_edges() {
    std::vector<int32_t> device;
    const auto is_sync = [&](int32_t i) { return sync_category_[category(row(i))] != 0; };
    for (const int32_t i : clipped_) {
      const TorchRow& r = row(i);
      if ((r.stream != -1 || name(r) == "Event Sync" || name(r) == "Context Sync") && r.partner_index >= 0)
        device.push_back(i);
    }
    std::vector<int64_t> times;  // starts of rows, but the ends of waits
    for (const int32_t i : device) times.push_back(is_sync(i) ? row(i).end_ns() : row(i).start_ns);
    for (const uint32_t k : numpy_order(times)) {
      const int32_t i = device[k];
      if (is_sync(i)) sync_edges(row(i));
      else if (start_[i] != kNoNode) kernel_edge(i);
    }
  }

  uint32_t node_of(const std::vector<uint32_t>& side, int32_t i) const { return i < 0 ? kNoNode : side[i]; }
  uint32_t last_kernel(int64_t stream) const {
    for (const auto& [s, node] : last_kernel_)
      if (s == stream) return node;
    return kNoNode;
  }

  void sync_edges(const TorchRow& sync) {
    const uint32_t call_end = node_of(end_, rank_.row_at(sync.partner_index));
    if (name(sync) == "Stream Wait Event" || name(sync) == "Event Sync") {
      const SyncFact* fact = fact_of(part_.syncs, sync.slice);
      const auto record = before_record_.find(fact == nullptr ? -1 : fact->wait_on_record_correlation);
      if (record == before_record_.end() || record->second < 0) return;
      const int32_t source = rank_.row_at(row(record->second).partner_index);
      if (name(sync) == "Event Sync") {
        if (node_of(end_, source) != kNoNode && call_end != kNoNode) add(node_of(end_, source), call_end, Kind::kSync);
      } else if (const auto next = after_wait_.find(sync.partner_index);
                 next != after_wait_.end() && next->second >= 0) {
        waits_for_[rank_.row_at(row(next->second).partner_index)] = source;
      }
      return;
    }
    if (call_end == kNoNode) return;
    if (name(sync) == "Context Sync")
      for (const auto& [stream, node] : last_kernel_) add(node, call_end, Kind::kSync);
    else if (const uint32_t node = last_kernel(sync.stream); node != kNoNode) add(node, call_end, Kind::kSync);
  }

  void kernel_edge(int32_t i) {
    const TorchRow& kernel = row(i);
    const uint32_t start = start_[i], end = end_[i];
    attribute(add(start, end, Kind::kOperator), PathEdge::kRoot);
    uint32_t source = kNoNode;
    if (const auto wait = waits_for_.find(i); wait != waits_for_.end()) {
      source = node_of(end_, wait->second);
      waits_for_.erase(wait);
    }
    if (source != kNoNode) add(source, start, Kind::kSync);
    const uint32_t last = last_kernel(kernel.stream);
    const int32_t call = rank_.row_at(kernel.partner_index);
    const uint32_t launch = node_of(start_, call);
    bool launched = false;
    if (call >= 0 && queue_[row(call).index] == 1 && queue_[kernel.index] == 0 &&
        (last == kNoNode || time(last) < row(call).start_ns) &&
        (source == kNoNode || time(source) < row(call).start_ns)) {
      if (launch != kNoNode) add(launch, start, Kind::kLaunchDelay);
      launched = true;
    } else if (last != kNoNode && time(start) - time(last) < kNearKernelNs &&
               (source == kNoNode || time(source) < time(last))) {
      attribute(add(last, start, Kind::kKernelKernel), PathEdge::kRoot);
    }
    if (options_.zero_launch && !launched && launch != kNoNode) add(launch, start, Kind::kLaunchDelay, true);
    for (auto& [stream, node] : last_kernel_)
      if (stream == kernel.stream) {
        node = end;
        return;
      }
    last_kernel_.emplace_back(kernel.stream, end);
  }

  // HTA's graph holds one edge between two nodes: it has the place of the first, the contents of the last, and the last
  // attribution that any of them had.
  void keep_last_of_equal_edges() {
    std::vector<PathEdge>& edges = graph_.edges;
    std::vector<uint32_t> order(edges.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto same = [&](uint32_t a, uint32_t b) {
      return edges[a].from == edges[b].from && edges[a].to == edges[b].to;
    };
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
      if (edges[a].from != edges[b].from) return edges[a].from < edges[b].from;
      return edges[a].to != edges[b].to ? edges[a].to < edges[b].to : a < b;
    });
    std::vector<uint8_t> drop(edges.size());
    for (size_t i = 0; i < order.size();) {
      size_t end = i + 1;
      int32_t attributed = edges[order[i]].row;
      for (; end < order.size() && same(order[i], order[end]); ++end) {
        drop[order[end]] = 1;
        if (edges[order[end]].row != PathEdge::kNobody) attributed = edges[order[end]].row;
      }
      edges[order[i]] = edges[order[end - 1]];
      edges[order[i]].row = attributed;
      i = end;
    }
    size_t kept = 0;
    for (size_t i = 0; i < edges.size(); ++i)
      if (!drop[i]) edges[kept++] = edges[i];
    edges.resize(kept);
  }

  bool check() {
    for (const PathEdge& edge : graph_.edges)
      if (edge.kind == Kind::kSync && row_of(edge.from).stream == row_of(edge.to).stream) graph_.sound = false;
    return graph_.sound;
  }

  // Sweeps in generations; the first best predecessor wins, and the first farthest node is the end.
  void longest_path() {
    const std::vector<PathEdge>& edges = graph_.edges;
    const size_t n = graph_.nodes.size();
    std::vector<uint32_t> in_begin(n + 1), out_begin(n + 1), in(edges.size()), out(edges.size()), wave, next;
    for (const PathEdge& edge : edges) {
      ++in_begin[edge.to + 1];
      ++out_begin[edge.from + 1];
    }
    for (size_t i = 0; i < n; ++i) in_begin[i + 1] += in_begin[i], out_begin[i + 1] += out_begin[i];
    std::vector<uint32_t> in_at(in_begin.begin(), in_begin.end() - 1), out_at(out_begin.begin(), out_begin.end() - 1);
    std::vector<uint8_t> seen(n);
    size_t nodes = 0;
    for (uint32_t e = 0; e < edges.size(); ++e) {
      in[in_at[edges[e].to]++] = e;
      out[out_at[edges[e].from]++] = e;
      for (const uint32_t node : {edges[e].from, edges[e].to}) {
        if (seen[node]) continue;
        seen[node] = 1;
        ++nodes;
        if (in_begin[node] == in_begin[node + 1]) wave.push_back(node);
      }
    }
    std::vector<uint32_t> waiting(n), best_edge(n, kNoNode);
    for (size_t i = 0; i < n; ++i) waiting[i] = in_begin[i + 1] - in_begin[i];
    std::vector<int64_t> distance(n);
    uint32_t last = kNoNode;
    size_t done = 0;
    for (; !wave.empty(); wave.swap(next)) {
      next.clear();
      for (const uint32_t node : wave) {
        ++done;
        for (uint32_t k = in_begin[node]; k < in_begin[node + 1]; ++k) {
          const PathEdge& edge = edges[in[k]];
          const int64_t total = distance[edge.from] + std::max<int64_t>(graph_.weight_ns(edge), 0);
          if (best_edge[node] != kNoNode && total <= distance[node]) continue;
          distance[node] = total;
          best_edge[node] = in[k];
        }
        if (last == kNoNode || distance[node] > distance[last]) last = node;
        for (uint32_t k = out_begin[node]; k < out_begin[node + 1]; ++k)
          if (--waiting[edges[out[k]].to] == 0) next.push_back(edges[out[k]].to);
      }
    }
    graph_.sound = done == nodes;
    if (!graph_.sound || last == kNoNode) return;
    graph_.path.push_back(last);
    for (uint32_t e = best_edge[last]; e != kNoNode; e = best_edge[edges[e].from]) {
      graph_.path.push_back(edges[e].from);
      graph_.path_edges.push_back(e);
      graph_.edges[e].critical = true;
    }
    std::ranges::reverse(graph_.path);
    std::ranges::reverse(graph_.path_edges);
  }

  const TorchRun& run_;
  const TorchRank& rank_;
  const PathOptions& options_;
  const Part& part_;
  PathGraph graph_;
  std::vector<uint8_t> node_category_, op_or_annotation_, sync_category_, blocking_, lock_, data_load_;
  std::vector<int32_t> clipped_;                                     // rows in file order
  std::vector<uint32_t> start_, end_;                                // nodes of each row
  std::vector<int32_t> calls_;                                       // launches that are queued
  std::vector<int32_t> queue_;                                       // by index
  std::unordered_map<int64_t, int32_t> before_record_, after_wait_;  // by correlation; by index of the call
  std::unordered_map<int32_t, int32_t> waits_for_;                   // row of a kernel → row that it waits for
  std::vector<std::pair<int64_t, uint32_t>> last_kernel_;            // for each stream, in order of first use
};

}  // namespace

PathGraph hta_path_graph(const TorchRun& run, const TorchRank& rank, const PathOptions& options) {
  return Builder(run, rank, options).build();
}

}  // namespace stageline
