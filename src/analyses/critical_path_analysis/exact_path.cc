#include "analyses/critical_path_analysis/exact_path.h"

// The default critical path: from the last event that ends, back to what it waited for last.
//
// Every node has the time at which it happened, and so has every node that it had to wait for; the latest of these
// delayed it. Going back from the end of the window in this way gives a chain without holes, whose weights are the
// times between its nodes. Some dependencies are not recorded; they are inferred, and marked as inferred. A blocking
// call waited for the last device work to end within the call. An idle thread waited for the thread that an arrow
// names, else for the thread of its process that was last at work. Without recorded stream waits, work that had been
// launched long before waited for the other stream whose work ended last.

namespace stageline {
namespace {

using Kind = PathEdgeKind;
constexpr uint32_t kNoNode = UINT32_MAX;
// ns; gaps of a thread up to this length are Python's own work, so no hand-over is inferred.
constexpr int64_t kIdle = 20'000;
constexpr int64_t kPrompt = 10'000;  // ns; a stream starts launched work within this time after what it waited for

class Builder {
 public:
  Builder(const TorchRun& run, const TorchRank& rank, const PathOptions& options)
      : run_(run), rank_(rank), options_(options), part_(*rank.part) {}

  PathGraph build() {
    if (!choose_rows()) return std::move(graph_);
    graph_.found = true;
    find_syncs();
    number_nodes();
    thread_edges();
    hand_overs();
    stream_edges();
    stream_waits();
    blocking_calls();
    walk_back();
    return std::move(graph_);
  }

 private:
  const TorchRow& row(int32_t i) const { return rank_.rows[i]; }
  int64_t time(uint32_t node) const { return graph_.nodes[node].time_ns; }
  static bool is_host_node(Category c) { return c == Category::kCpuOp || is_launch_call(c); }

  // Chooses operators and calls that start in the window, and the device work that these calls launch, whenever it
  // runs.
  bool choose_rows() {
    int64_t low = INT64_MAX, high = INT64_MIN;
    const std::vector<uint8_t> named = names_with(run_, {options_.annotation});
    std::vector<int32_t> instances;
    for (uint32_t i = 0; i < rank_.rows.size(); ++i) {
      const TorchRow& r = rank_.rows[i];
      if (options_.annotation.empty() ? is_host_node(r.category) || r.on_device
                                      : named[r.name] != 0 && is_host(r.category))
        instances.push_back(i);
    }
    if (!options_.annotation.empty()) {
      std::ranges::sort(instances, {}, [&](int32_t a) { return std::tie(row(a).start_ns, row(a).index); });
      graph_.matches = instances.size();
      if (options_.first >= instances.size()) return false;
      instances.resize(std::min(instances.size(), options_.last + 1));
      instances.erase(instances.begin(), instances.begin() + options_.first);
    }
    for (const int32_t i : instances) {
      low = std::min(low, row(i).start_ns);
      high = std::max(high, row(i).end_ns());
    }
    if (instances.empty()) return false;
    graph_.from_ns = low;
    graph_.to_ns = high;
    const auto inside = [&](const TorchRow& r) { return r.start_ns >= low && r.start_ns <= high; };
    for (uint32_t i = 0; i < rank_.rows.size(); ++i) {
      const TorchRow& r = rank_.rows[i];
      const bool host = is_host_node(r.category) && inside(r);
      const bool device = r.on_device && (r.partner >= 0 ? inside(row(r.partner)) : inside(r));
      if (!host && !device) continue;
      rows_.push_back(i);
      graph_.to_ns = std::max(graph_.to_ns, end_ns(r));
    }
    return true;
  }

  // Returns the end of a row. A blocking call ends no earlier than the end of the wait that was recorded for it.
  int64_t end_ns(const TorchRow& r) const {
    if (r.on_device || r.partner < 0 || row(r.partner).category != Category::kDeviceSync) return r.end_ns();
    return std::max(r.end_ns(), waits_[r.name] ? row(r.partner).end_ns() : 0);
  }

  // Finds out whether the profiler recorded which stream waits for which.
  void find_syncs() {
    for (const TorchRow& r : rank_.rows) {
      if (r.category != Category::kDeviceSync) continue;
      graph_.has_syncs = true;
      const SyncFact* fact = fact_of(part_.syncs, r.slice);
      knows_stream_waits_ |= r.stream >= 0 && !stream_sync_[r.name] && fact != nullptr && fact->wait_on_stream >= 0;
    }
  }

  // The order of nodes with equal times, causes before effects: device work ends, host operators end, events without
  // duration, host operators start, device work starts.
  int turn(const PathNode& node) const {
    const TorchRow& r = row(node.row);
    if (r.dur_ns == 0) return 2;
    if (node.is_end) return r.on_device ? 0 : 1;
    return r.on_device ? 4 : 3;
  }

  void number_nodes() {
    start_.assign(rank_.rows.size(), kNoNode);
    end_.assign(rank_.rows.size(), kNoNode);
    graph_.nodes.reserve(2 * rows_.size());
    for (const int32_t i : rows_) {
      graph_.nodes.push_back({row(i).start_ns, i, false});
      graph_.nodes.push_back({end_ns(row(i)), i, true});
    }
    // Rows come thread by thread, by start and then longest first. So at equal times, outer operators open first and
    // close last.
    std::ranges::sort(graph_.nodes, [&](const PathNode& a, const PathNode& b) {
      if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
      const int a_turn = turn(a), b_turn = turn(b);
      if (a_turn != b_turn) return a_turn < b_turn;
      if (a_turn <= 1) return a.row > b.row;
      return a.row != b.row ? a.row < b.row : !a.is_end && b.is_end;
    });
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n)
      (graph_.nodes[n].is_end ? end_ : start_)[graph_.nodes[n].row] = n;
    held_by_.assign(graph_.nodes.size(), kNoNode);
    graph_.edges.reserve(graph_.nodes.size());  // most runs have one edge for each node, or nearly
  }

  // Adds an edge if its source happened no later than its target. The target is held up by its latest source; of equal
  // times, by the one added first.
  void add(uint32_t from, uint32_t to, Kind kind, int32_t whose) {
    if (from == kNoNode || to == kNoNode) return;
    if (time(from) > time(to) || from >= to) {
      ++graph_.acausal;
      return;
    }
    graph_.edges.push_back({from, to, kind, false, true, whose});
    const uint32_t e = static_cast<uint32_t>(graph_.edges.size() - 1);
    uint32_t& held = held_by_[to];
    if (held == kNoNode || time(from) > time(graph_.edges[held].from)) held = e;
  }

  // A thread does one thing at a time: it is in the innermost open operator, or in a gap without recorded work.
  void thread_edges() {
    // The open rows of a thread, outermost first. A row that ends before rows inside it stays in the list, marked,
    // until it is the first or the last one. Otherwise rows that cross would be moved again and again.
    std::vector<uint8_t> is_closed(rank_.rows.size(), 0);
    struct Thread {
      uint32_t last = kNoNode;
      std::vector<int32_t> open;
      size_t first = 0;
      bool is_empty() const { return first >= open.size(); }
      void drop_closed(const std::vector<uint8_t>& is_closed, int64_t& looks) {
        for (; !is_empty() && is_closed[open.back()]; ++looks) open.pop_back();
        for (; !is_empty() && is_closed[open[first]]; ++looks) ++first;
        if (is_empty()) open.clear(), first = 0;
      }
    };
    std::vector<Thread> threads(part_.lanes.size());
    process_ = processes();
    top_ends_.resize(part_.lanes.size());
    work_.resize(process_.empty() ? 0 : *std::ranges::max_element(process_) + 1);
    // A vector that grows leaves holes of its former sizes behind.
    std::vector<size_t> most(work_.size(), 0);
    for (const int32_t i : rows_) most[process_[row(i).lane]] += row(i).on_device ? 0 : 2;
    for (size_t p = 0; p < most.size(); ++p) work_[p].reserve(most[p]);
    gaps_.reserve(std::accumulate(most.begin(), most.end(), size_t{0}));
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      const PathNode& node = graph_.nodes[n];
      const TorchRow& r = row(node.row);
      if (r.on_device) continue;
      Thread& thread = threads[r.lane];
      if (thread.last != kNoNode) {
        const bool gap = thread.is_empty();
        add(thread.last, n, gap ? Kind::kGap : Kind::kOperator, gap ? PathEdge::kNobody : thread.open.back());
        if (gap) gaps_.push_back({thread.last, n});
      } else {
        gaps_.push_back({kNoNode, n});
      }
      if (!node.is_end) {
        thread.open.push_back(node.row);
      } else {
        is_closed[node.row] = 1;
        thread.drop_closed(is_closed, graph_.looks);
      }
      if (node.is_end && thread.is_empty()) top_ends_[r.lane].push_back(n);
      // Threads that only poll (NCCL's watchdog) hand over nothing. A thread works when it runs an operator or a call
      // that blocks.
      const auto works = [&](const TorchRow& it) { return it.category == Category::kCpuOp || waits_[it.name]; };
      if (works(r) || (!thread.is_empty() && works(row(thread.open[thread.first])))) add_work(r.lane, n);
      thread.last = n;
    }
  }

  // Returns the last of `nodes` in the gap (before, after); kNoNode when there is none.
  static uint32_t last_in_gap(const std::vector<uint32_t>& nodes, uint32_t before, uint32_t after) {
    const auto next = std::ranges::lower_bound(nodes, after);
    return next != nodes.begin() && (before == kNoNode || *(next - 1) > before) ? *(next - 1) : kNoNode;
  }

  // Returns the pairs of lanes that are connected by forward-backward arrows, in both directions, sorted.
  std::vector<std::pair<uint16_t, uint16_t>> joined_lanes() const {
    std::vector<std::pair<uint16_t, uint16_t>> joined;
    std::vector<uint16_t> lane_of(part_.slices.size());
    for (size_t l = 0; l < part_.lanes.size(); ++l)
      for (size_t i = part_.lanes[l].begin; i < part_.lanes[l].end; ++i) lane_of[i] = static_cast<uint16_t>(l);
    for (const SliceLink& link : part_.slice_links) {
      if (link.kind != SliceLinkKind::kForwardBackward || lane_of[link.from] == lane_of[link.to]) continue;
      const std::pair pair{lane_of[link.from], lane_of[link.to]};
      if (joined.size() > 1 && joined[joined.size() - 2] == pair) continue;
      joined.push_back(pair);
      joined.emplace_back(pair.second, pair.first);
    }
    sort_unique(joined);
    return joined;
  }

  // Returns the process of each lane, as a number.
  std::vector<uint32_t> processes() const {
    std::unordered_map<std::string_view, uint32_t> numbers;
    std::vector<uint32_t> out;
    for (const Lane& lane : part_.lanes)
      out.push_back(numbers.try_emplace(lane.pid, static_cast<uint32_t>(numbers.size())).first->second);
    return out;
  }

  // Work of the threads of one process, in order of time. `other` is the index of the last work before it by another
  // thread. So a thread finds the work of the others in one look, however many threads there are.
  struct Work {
    uint32_t node = 0, other = kNoNode;
  };
  uint16_t lane_of_work(const Work& work) const { return row(graph_.nodes[work.node].row).lane; }
  void add_work(uint16_t lane, uint32_t node) {
    std::vector<Work>& of = work_[process_[lane]];
    Work next{node, kNoNode};
    if (!of.empty())
      next.other = lane_of_work(of.back()) != lane ? static_cast<uint32_t>(of.size() - 1) : of.back().other;
    of.push_back(next);
  }

  // Returns the last node of another thread's work in the gap (before, after); kNoNode when there is none.
  uint32_t last_of_others(const std::vector<Work>& work, uint16_t lane, uint32_t before, uint32_t after) {
    ++graph_.looks;
    const auto next = std::ranges::partition_point(work, [&](const Work& w) { return w.node < after; });
    if (next == work.begin()) return kNoNode;
    const Work& last = *(next - 1);
    const uint32_t place = lane_of_work(last) != lane ? static_cast<uint32_t>(next - 1 - work.begin()) : last.other;
    if (place == kNoNode || (before != kNoNode && work[place].node <= before)) return kNoNode;
    return work[place].node;
  }

  // In a gap, a thread waits for the thread that it works with, if that thread ended an operator within the gap. If no
  // arrow names that thread, it is the thread of the same process that was last at work in the gap.
  void hand_overs() {
    const std::vector<std::pair<uint16_t, uint16_t>> joined = joined_lanes();
    for (const auto& [before, after] : gaps_) {
      const uint16_t lane = row(graph_.nodes[after].row).lane;
      bool known = false;
      for (auto it = std::ranges::lower_bound(joined, std::pair{lane, uint16_t{0}});
           it != joined.end() && it->first == lane; ++it) {
        ++graph_.looks;
        const uint32_t from = last_in_gap(top_ends_[it->second], before, after);
        add_if(from, after, Kind::kHandOver);
        known |= from != kNoNode;
      }
      if (known || (before != kNoNode && time(after) - time(before) <= kIdle)) continue;
      add_if(last_of_others(work_[process_[lane]], lane, before, after), after, Kind::kHandOverInferred);
    }
    // Freed here, because they take tens of bytes for each event and are not needed any more.
    top_ends_ = {};
    work_ = {};
    gaps_ = {};
  }
  void add_if(uint32_t from, uint32_t to, Kind kind) {
    if (from != kNoNode) add(from, to, kind, PathEdge::kNobody);
  }

  // A kernel waits for the kernel before it on its stream and for its launch. All kernels of a graph have one launch,
  // and the waits inside a graph are not recorded. There, the next kernel to start is held up by the last kernel of the
  // graph that ended, on whatever stream.
  void stream_edges() {
    std::vector<uint32_t> last(part_.lanes.size(), kNoNode), last_of_launch(rank_.rows.size(), kNoNode);
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      const PathNode& node = graph_.nodes[n];
      const TorchRow& r = row(node.row);
      if (!r.on_device) continue;
      if (node.is_end) {
        add(start_[node.row], n, Kind::kOperator, node.row);
        if (last[r.lane] == kNoNode || time(last[r.lane]) <= node.time_ns) last[r.lane] = n;
        device_ends_.push_back(n);
        if (r.partner >= 0) last_of_launch[r.partner] = n;
        continue;
      }
      const bool first = r.partner >= 0 && last_of_launch[r.partner] == kNoNode;
      const uint32_t awaited = first ? other_stream(n, last[r.lane]) : kNoNode;
      if (last[r.lane] != kNoNode)
        add(last[r.lane], n, awaited == n ? Kind::kStreamGap : Kind::kKernelKernel, graph_.nodes[last[r.lane]].row);
      if (awaited != n) add_if(awaited, n, Kind::kStreamWaitInferred);
      if (r.partner < 0) continue;
      const size_t launch = r.partner;
      if (const uint32_t other = last_of_launch[launch]; other != kNoNode && other != last[r.lane])
        add(other, n, Kind::kKernelKernel, graph_.nodes[other].row);
      add(start_[launch], n, Kind::kLaunchDelay, PathEdge::kNobody);
    }
  }

  // Returns the node that device work waited for, if the work could have started long before its start and no stream
  // waits are recorded. That is the last end, just before it, of work on another stream. `n` itself means unknown;
  // kNoNode means that it did not wait.
  uint32_t other_stream(uint32_t n, uint32_t before) const {
    const TorchRow& r = row(graph_.nodes[n].row);
    if (knows_stream_waits_) return kNoNode;
    const int64_t latest_start = time(n) - kPrompt;
    if (row(r.partner).end_ns() >= latest_start || (before != kNoNode && time(before) >= latest_start)) return kNoNode;
    for (auto it = device_ends_.rbegin(); it != device_ends_.rend() && time(*it) >= latest_start; ++it)
      if (row(graph_.nodes[*it].row).lane != r.lane) return *it;
    return n;
  }

  // Device rows of a lane in order of launch, as (start of the launch, row).
  using Launches = std::vector<std::pair<int64_t, int32_t>>;

  // cudaStreamWaitEvent: whatever the waiting stream launches next waits for the work that had been launched on the
  // recorded stream when the event was recorded. This is known only when the profiler was asked for synchronisation
  // events.
  void stream_waits() {
    if (part_.syncs.empty()) return;
    std::unordered_map<int64_t, Launches> by_stream;
    for (const int32_t i : rows_)
      if (row(i).on_device && row(i).partner >= 0)
        by_stream[row(i).stream].emplace_back(row(row(i).partner).start_ns, i);
    for (auto& [stream, launches] : by_stream) std::ranges::sort(launches);
    std::unordered_map<int64_t, int64_t> record_time;  // indexed by correlation
    const std::vector<uint8_t> records = names_equal(run_, {"cudaEventRecord", "hipEventRecord", "cuEventRecord"});
    for (const TorchRow& r : rank_.rows)
      if (records[r.name] && r.correlation >= 0) record_time[r.correlation] = r.start_ns;
    for (const TorchRow& r : rank_.rows) {
      if (r.category != Category::kDeviceSync || r.partner < 0) continue;
      const SyncFact* fact = fact_of(part_.syncs, r.slice);
      if (fact == nullptr || fact->wait_on_stream < 0 || fact->wait_on_stream == r.stream) continue;
      const auto record = record_time.find(fact->wait_on_record_correlation);
      const auto from = by_stream.find(fact->wait_on_stream), to = by_stream.find(r.stream);
      if (record == record_time.end() || from == by_stream.end() || to == by_stream.end()) continue;
      const Launches &sources = from->second, &targets = to->second;
      const auto source = std::ranges::lower_bound(sources, std::pair{record->second, INT32_MIN});
      const auto target = std::ranges::lower_bound(targets, std::pair{row(r.partner).start_ns, INT32_MIN});
      if (source == sources.begin() || target == targets.end()) continue;
      add(end_[(source - 1)->second], start_[target->second], Kind::kSync, PathEdge::kNobody);
    }
  }

  // A blocking call ends when the device work that it waits for has ended: the last work to end within the call.
  void blocking_calls() {
    std::unordered_map<int64_t, std::vector<uint32_t>> by_stream;
    for (const uint32_t n : device_ends_) by_stream[row(graph_.nodes[n].row).stream].push_back(n);
    for (const int32_t i : rows_) {
      const TorchRow& call = row(i);
      const uint32_t end = end_[i];
      if (call.on_device) continue;
      const int32_t own = call.partner;
      if (own >= 0 && row(own).on_device && end_[own] != kNoNode &&
          row(own).end_ns() <= call.end_ns()) {  // a copy that ended within the call, so the call waited for its end
        add(end_[own], end, Kind::kSync, PathEdge::kNobody);
      } else if (waits_[call.name]) {
        const std::vector<uint32_t>* ends = &device_ends_;
        if (own >= 0 && row(own).category == Category::kDeviceSync) {
          const SyncFact* fact = fact_of(part_.syncs, row(own).slice);
          const bool of_event = fact != nullptr && fact->wait_on_stream >= 0 && !stream_sync_[row(own).name];
          const int64_t stream = of_event ? fact->wait_on_stream : row(own).stream;
          if (const auto it = by_stream.find(stream); it != by_stream.end()) ends = &it->second;
        }
        const auto after = std::lower_bound(ends->begin(), ends->end(), end);
        if (after != ends->begin() && time(*(after - 1)) > call.start_ns)
          add(*(after - 1), end, Kind::kSync, PathEdge::kNobody);
      }
    }
  }

  void walk_back() {
    if (graph_.nodes.empty()) return;
    auto node = static_cast<uint32_t>(graph_.nodes.size() - 1);
    for (;;) {
      graph_.path.push_back(node);
      const uint32_t e = held_by_[node];
      if (e == kNoNode) break;
      graph_.path_edges.push_back(e);
      graph_.edges[e].critical = true;
      node = graph_.edges[e].from;
    }
    std::ranges::reverse(graph_.path);
    std::ranges::reverse(graph_.path_edges);
  }

  const TorchRun& run_;
  const TorchRank& rank_;
  const PathOptions& options_;
  const Part& part_;
  const std::vector<uint8_t> waits_ =  // indexed by name
      names_equal(run_, {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cuCtxSynchronize",
                         "cuStreamSynchronize", "cuEventSynchronize", "hipDeviceSynchronize", "hipStreamSynchronize",
                         "hipEventSynchronize", "cudaFree", "hipFree"});
  const std::vector<uint8_t> stream_sync_ = names_equal(run_, {"Stream Sync"});
  bool knows_stream_waits_ = false;
  PathGraph graph_;
  std::vector<int32_t> rows_;                        // rows in the window
  std::vector<uint32_t> start_, end_;                // for each row: its nodes
  std::vector<uint32_t> held_by_;                    // for each node: the edge that holds it up
  std::vector<uint32_t> device_ends_;                // nodes, in order of time
  std::vector<std::pair<uint32_t, uint32_t>> gaps_;  // between top-level operators of a thread
  std::vector<uint32_t> process_;                    // for each lane: the number of its process
  std::vector<std::vector<uint32_t>> top_ends_;      // for each lane: the nodes where a thread has nothing open
  // For each process: the nodes where one of its threads does something, waits or has finished work.
  std::vector<std::vector<Work>> work_;
};

}  // namespace

PathGraph exact_path_graph(const TorchRun& run, const TorchRank& rank, const PathOptions& options) {
  return Builder(run, rank, options).build();
}

}  // namespace stageline
