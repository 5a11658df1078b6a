// Lists the work of captured graphs (CUDA, HIP) and the cost of replays. Definitions: docs/analyses/graph-replays.md.
#include "analyses/analysis.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

// One launch of a graph and the device work that belongs to this call.
struct Replay {
  int64_t call_start_ns = 0, call_ns = 0;
  int64_t first_start_ns = 0, last_end_ns = 0;
  int64_t work_ns = 0;  // sum of durations
  int64_t busy_ns = 0;  // their union
  // Names of its work, sorted, because streams of a graph need not start in the same order each time.
  std::vector<StringId> names;
  StringId first_name = 0;  // name of the work that began first
  int64_t span_ns() const { return last_end_ns - first_start_ns; }
};

// All replays of the same work.
struct Graph {
  int64_t number = 0;  // numbered by the first replay on the rank
  StringId first_name = 0;
  int64_t replays = 0, work_count = 0, call_ns = 0, delay_ns = 0, span_ns = 0, busy_ns = 0, work_ns = 0;
  int64_t min_span_ns = INT64_MAX, max_span_ns = 0;

  void add(const Replay& replay, int64_t count) {
    ++replays;
    work_count = count;
    call_ns += replay.call_ns;
    delay_ns += replay.first_start_ns - replay.call_start_ns;
    span_ns += replay.span_ns();
    busy_ns += replay.busy_ns;
    work_ns += replay.work_ns;
    min_span_ns = std::min(min_span_ns, replay.span_ns());
    max_span_ns = std::max(max_span_ns, replay.span_ns());
  }
};

struct RankGraphs {
  int32_t rank = 0;
  std::vector<Graph> graphs;  // longest busy time first
  int64_t replays = 0, graph_work_count = 0, graph_call_ns = 0, graph_work_ns = 0;
  int64_t other_work_count = 0, other_call_ns = 0, other_work_ns = 0;  // of work that was not launched by a graph
};

bool launches_graph(std::string_view name) { return name.find("GraphLaunch") != std::string_view::npos; }

// `work` holds the rows of one launch, sorted by start.
Replay replay_of(const TorchRank& rank, const TorchRow& launch, const std::vector<uint32_t>& work) {
  Replay replay{.call_start_ns = launch.start_ns,
                .call_ns = launch.dur_ns,
                .first_start_ns = rank.rows[work[0]].start_ns,
                .first_name = rank.rows[work[0]].name};
  RunningUnion busy;
  for (const uint32_t w : work) {
    const TorchRow& row = rank.rows[w];
    replay.names.push_back(row.name);
    replay.work_ns += row.dur_ns;
    replay.busy_ns += busy.add(row.start_ns, row.end_ns());
  }
  replay.last_end_ns = busy.end_ns();
  std::ranges::sort(replay.names);
  return replay;
}

using Launched = std::pair<int32_t, uint32_t>;  // row of the call, row of the work

// Sorts by the start of the call, then by the start of the work.
void sort_by_call(const TorchRank& rank, std::vector<Launched>& launched) {
  const auto start = [&](uint32_t row) { return rank.rows[row].start_ns; };
  std::ranges::sort(launched, [&](const Launched& a, const Launched& b) {
    if (a.first == b.first)
      return start(a.second) != start(b.second) ? start(a.second) < start(b.second) : a.second < b.second;
    const int64_t x = start(static_cast<uint32_t>(a.first)), y = start(static_cast<uint32_t>(b.first));
    return x != y ? x < y : a.first < b.first;
  });
}

RankGraphs graphs_of(const TorchRank& rank, const std::vector<uint8_t>& is_graph_launch) {
  RankGraphs out;
  out.rank = rank.rank;
  std::vector<Launched> launched;
  for (uint32_t r = 0; r < rank.rows.size(); ++r) {
    const TorchRow& row = rank.rows[r];
    if (!row.on_device || row.partner < 0) continue;
    const TorchRow& call = rank.rows[row.partner];
    if (is_graph_launch[call.name]) {
      launched.emplace_back(row.partner, r);
    } else {
      ++out.other_work_count;
      if (call.partner == static_cast<int32_t>(r)) out.other_call_ns += call.dur_ns;  // added only once for each call
      out.other_work_ns += row.dur_ns;
    }
  }
  sort_by_call(rank, launched);
  std::map<std::vector<StringId>, size_t> known;
  std::vector<uint32_t> work;
  for (size_t i = 0; i < launched.size();) {
    const int32_t call = launched[i].first;
    work.clear();
    for (; i < launched.size() && launched[i].first == call; ++i) work.push_back(launched[i].second);
    Replay replay = replay_of(rank, rank.rows[call], work);
    const auto [at, fresh] = known.try_emplace(std::move(replay.names), out.graphs.size());
    if (fresh) out.graphs.push_back({std::ssize(out.graphs) + 1, replay.first_name});
    out.graphs[at->second].add(replay, std::ssize(work));
    ++out.replays;
    out.graph_work_count += std::ssize(work);
    out.graph_call_ns += replay.call_ns;
    out.graph_work_ns += replay.work_ns;
  }
  sort_stably(out.graphs, std::ranges::greater(), &Graph::busy_ns);
  return out;
}

int64_t rounded_mean(int64_t sum, int64_t count) {
  return count > 0 ? std::llround(sum / static_cast<double>(count)) : kNullInteger;
}

}  // namespace

Result<AnalysisResult> run_graph_replays(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true, .store = input.rows}));
  std::vector<uint8_t> is_graph_launch(torch->trace->names.size());  // indexed by name
  for (StringId id = 0; id < is_graph_launch.size(); ++id)
    is_graph_launch[id] = launches_graph(torch->trace->names.text(id));
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return graphs_of(rank, is_graph_launch); });
  if (std::ranges::all_of(ranks, [](const RankGraphs& rank) { return rank.replays == 0; })) {
    if (input.for_report) return AnalysisResult{};  // graphs were not asked for
    return make_error(ErrorCode::kNotFound, "no device work of this trace was launched by a graph");
  }
  Table use(declared_table("graph-replays/graph-use"));
  Table replays(declared_table("graph-replays/graph-replays"));
  for (const RankGraphs& rank : ranks) {
    const int64_t all_ns = rank.graph_work_ns + rank.other_work_ns;
    use.add_row({int64_t{rank.rank}, rank.replays, rank.graph_work_count, rank.other_work_count, rank.graph_work_ns,
                 rank.other_work_ns, share_of(rank.graph_work_ns, all_ns),
                 rounded_mean(rank.graph_call_ns, rank.graph_work_count),
                 rounded_mean(rank.other_call_ns, rank.other_work_count)});
    for (const Graph& graph : rank.graphs)
      replays.add_row({int64_t{rank.rank}, graph.number, std::string(torch->trace->names.text(graph.first_name)),
                       graph.replays, graph.work_count, rounded_mean(graph.call_ns, graph.replays),
                       rounded_mean(graph.delay_ns, graph.replays), rounded_mean(graph.span_ns, graph.replays),
                       graph.min_span_ns, graph.max_span_ns, share_of(graph.span_ns - graph.busy_ns, graph.span_ns),
                       share_of(graph.work_ns, all_ns)});
  }
  AnalysisResult result;
  return result.with(std::move(use), std::move(replays));
}

}  // namespace stageline
