#include "pipeline/whole_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

#include "base/number.h"
#include "pipeline/step_draft.h"

namespace stageline {
namespace {

constexpr double kMostMiss = 0.01;  // of the recorded steps

bool is_split(CellKind kind) {
  return kind == CellKind::kInputGrad || kind == CellKind::kWeightGrad || kind == CellKind::kForwardBackward;
}

// In most steps optimizers of several ranks begin only when the last compute cell has ended.
bool optimizers_wait(const StepGraph& g) {
  size_t together = 0, steps = 0;
  for (const GraphStep& step : g.steps) {
    int64_t last_end = INT64_MIN, first_start = INT64_MAX;
    int optimizers = 0;
    for (uint32_t op = step.begin; op < step.end; ++op) {
      if (is_compute(g.kind[op])) last_end = std::max(last_end, g.end_ns[op]);
      if (g.kind[op] != CellKind::kOptimizer) continue;
      ++optimizers;
      first_start = std::min(first_start, g.start_ns[op]);
    }
    if (optimizers < 2) continue;
    ++steps;
    together += first_start >= last_end;
  }
  return steps > 0 && 2 * together > steps;
}

// From the first start to the last end of a step's work.
struct Extent {
  int64_t first = INT64_MAX, last = INT64_MIN;
  void take(int64_t start, int64_t end) {
    first = std::min(first, start);
    last = std::max(last, end);
  }
  double span() const { return first < last ? static_cast<double>(last) - static_cast<double>(first) : 0; }
};

// By how much the replay of the recorded times misses the recorded steps, as a share of them: what work its steps lack,
// and what its waits add.
double replay_miss(const Trace& trace, const StepGraph& g) {
  const Cells& cells = trace.cells;
  std::map<int32_t, std::array<Extent, 2>> recorded;  // as stamped, and on common time
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.step[i] == kUnknown || !(is_compute(cells.kind[i]) || cells.kind[i] == CellKind::kOptimizer)) continue;
    std::array<Extent, 2>& extents = recorded[cells.step[i]];
    extents[0].take(cells.start_ns[i], cells.end_ns[i]);
    extents[1].take(trace.common_ns(cells.part[i], cells.start_ns[i]), trace.common_ns(cells.part[i], cells.end_ns[i]));
  }
  const OpTimes own = recorded_times(g);
  const WorldTimes replayed = replay_worlds(g, std::span(&own, 1));
  double total = 0, missed = 0;
  for (size_t s = 0; s < g.steps.size(); ++s) {
    const auto span_ns = static_cast<double>(g.steps[s].span_ns);
    total += span_ns;
    double miss = std::abs(replayed.ns(s, 0) - span_ns);
    if (const auto it = recorded.find(g.steps[s].step); it != recorded.end())
      miss = std::max(miss, std::min(it->second[0].span(), it->second[1].span()) - span_ns);
    missed += miss;
  }
  return missed / std::max(total, 1.0);
}

}  // namespace

Result<StepGraph> build_whole_graph(const Trace& trace, Diagnostics& notes, bool* as_step_graph) {
  Diagnostics own;
  Result<StepGraph> graph = build_step_graph(trace, own, LaunchRule::kInOrder);
  if (!graph) return graph;
  if (as_step_graph) *as_step_graph = graph->source == GraphSource::kComputeCells;  // those have no launch rule
  const auto keep = [&] {
    notes.merge(own);
    return std::move(graph);
  };
  const double miss = replay_miss(trace, *graph);
  const auto unlike = [](double share) {
    return Error{ErrorCode::kBadInput,
                 "a replay of this run's own times misses its steps by " + percent(share) +
                     ", so nothing that follows from replays can be said",
                 {},
                 "stageline info shows what is odd about the recording"};
  };
  if (graph->source != GraphSource::kOperations) {
    if (miss > kMostMiss) return unlike(miss);
    return keep();
  }
  const bool split = std::any_of(graph->kind.begin(), graph->kind.end(), is_split);
  // One group over ranks of several stages, of whatever kind but messages, ties the end of the step together.
  const bool tied = std::any_of(graph->groups.begin(), graph->groups.end(), [&](const GraphGroup& group) {
    return !is_message(graph->kind[group.begin]) && graph->stage[group.begin] != graph->stage[group.end - 1];
  });
  const bool whole_steps = miss <= kMostMiss;
  if (whole_steps && !split && (tied || !optimizers_wait(*graph))) return keep();
  std::vector<GraphType> types;
  Diagnostics of_cells;
  std::vector<StepDraft> drafts = draft_cells(trace, types, of_cells);
  if (drafts.empty()) {
    if (!whole_steps) return unlike(miss);
    return keep();
  }
  StepGraph whole = assemble_graph(trace, std::move(drafts), std::move(types), GraphSource::kComputeCells, of_cells);
  if (const double left = replay_miss(trace, whole); left > kMostMiss) {
    if (!whole_steps) return unlike(std::min(miss, left));
    return keep();
  }
  notes.merge(of_cells);
  return whole;
}

}  // namespace stageline
