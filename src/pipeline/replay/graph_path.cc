#include "pipeline/replay/graph_path.h"

#include "base/parallel.h"

namespace stageline {
namespace {

struct Unit {  // operations that proceed together
  uint32_t begin, end;
};
Unit unit_of(const StepGraph& graph, uint32_t op) {
  if (graph.group(op) == kNoGroup) return {op, op + 1};
  const GraphGroup& group = graph.groups[graph.group(op)];
  return {group.begin, group.end};
}

constexpr int64_t kSameMomentNs = 50'000;  // two timestamps of the same moment may differ by this much

// Returns the last to end of what an operation waited for; UINT32_MAX when it waited for nothing.
uint32_t last_wait(const StepGraph& graph, uint32_t op) {
  uint32_t last = UINT32_MAX;
  for (const uint32_t on : graph.waits(op))
    if (last == UINT32_MAX || graph.ended_ns(on) > graph.ended_ns(last)) last = on;
  return last;
}

}  // namespace

const char* path_piece_name(PathPiece piece) {
  switch (piece) {
    case PathPiece::kWork: return "work";
    case PathPiece::kTransfer: return "transfer";
    case PathPiece::kDelay: break;
  }
  return "delay";
}

std::vector<PathStretch> critical_path(const StepGraph& graph, const GraphStep& step) {
  std::vector<PathStretch> path;
  uint32_t op = UINT32_MAX;
  for (uint32_t i = step.begin; i < step.end; ++i)
    if (graph.closes(i) && (op == UINT32_MAX || graph.ended_ns(i) > graph.ended_ns(op))) op = i;
  if (op == UINT32_MAX) return path;
  int64_t until = step.span_ns;
  const auto add = [&](uint32_t of, uint32_t peer, PathPiece piece, int64_t from) {
    from = std::clamp<int64_t>(from, 0, until);
    if (from < until) path.push_back({of, peer, piece, from, until});
    until = from;
  };
  // Every round continues at an operation before the unit, so the loop ends.
  while (true) {
    const Unit unit = unit_of(graph, op);
    // Finds the member that the others waited for: the last to start, or, of several that started within the error of a
    // timestamp, the one whose own wait ended last.
    int64_t latest = INT64_MIN;
    for (uint32_t k = unit.begin; k < unit.end; ++k) latest = std::max(latest, graph.start_ns[k]);
    uint32_t last = UINT32_MAX, before = UINT32_MAX;
    for (uint32_t k = unit.begin; k < unit.end; ++k) {
      if (graph.start_ns[k] < latest - kSameMomentNs) continue;
      const uint32_t waited = last_wait(graph, k);
      if (last != UINT32_MAX &&
          (waited == UINT32_MAX || (before != UINT32_MAX && graph.ended_ns(waited) <= graph.ended_ns(before))))
        continue;
      last = k;
      before = waited;
    }
    const int64_t ready = before == UINT32_MAX ? 0 : graph.ended_ns(before);
    const PathPiece piece = graph.types[graph.type[op]].communicates ? PathPiece::kTransfer : PathPiece::kWork;
    add(op, last, piece, std::max(graph.start_ns[last], ready));
    add(last, last, PathPiece::kDelay, ready);
    if (before == UINT32_MAX) break;
    op = before;
  }
  std::ranges::reverse(path);
  return path;
}

std::vector<int64_t> slack_ns(const StepGraph& graph) {
  const ReplayedOps run = replay_ops(graph, recorded_times(graph));
  std::vector<int64_t> slack(graph.size(), 0);
  std::vector<double> latest(graph.size());  // the latest end that makes no step longer
  parallel_for(graph.steps.size(), [&](size_t s) {
    const GraphStep& step = graph.steps[s];
    double span = 0;
    for (uint32_t i = step.begin; i < step.end; ++i)
      if (graph.closes(i)) span = std::max(span, run.end_ns[i]);
    for (uint32_t i = step.begin; i < step.end; ++i) latest[i] = std::max(span, run.end_ns[i]);
    for (uint32_t i = step.end; i-- > step.begin;) {
      const Unit unit = unit_of(graph, i);
      double start = latest[i] - graph.dur_ns[i];  // the latest start of the unit
      for (uint32_t k = unit.begin; k < unit.end; ++k) start = std::min(start, latest[k] - graph.dur_ns[k]);
      for (uint32_t k = unit.begin; k < unit.end; ++k) {
        slack[k] = std::max<int64_t>(0, std::llround(latest[k] - run.end_ns[k]));
        for (const uint32_t on : graph.waits(k)) latest[on] = std::min(latest[on], start - graph.delay_ns[k]);
      }
      i = unit.begin;
    }
  });
  return slack;
}

}  // namespace stageline
