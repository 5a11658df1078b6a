#include "pipeline/whole_graph.h"

#include <algorithm>

#include "pipeline/step_draft.h"

namespace stageline {
namespace {

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
  if (graph->source != GraphSource::kOperations) return keep();
  const bool split = std::any_of(graph->kind.begin(), graph->kind.end(), is_split);
  // One group over ranks of several stages, of whatever kind but messages, ties the end of the step together.
  const bool tied = std::any_of(graph->groups.begin(), graph->groups.end(), [&](const GraphGroup& group) {
    return !is_message(graph->kind[group.begin]) && graph->stage[group.begin] != graph->stage[group.end - 1];
  });
  if (!split && (tied || !optimizers_wait(*graph))) return keep();
  std::vector<GraphType> types;
  Diagnostics of_cells;
  std::vector<StepDraft> drafts = draft_cells(trace, types, of_cells);
  if (drafts.empty()) return keep();
  StepGraph whole = assemble_graph(trace, std::move(drafts), std::move(types), GraphSource::kComputeCells, of_cells);
  notes.merge(of_cells);
  return whole;
}

}  // namespace stageline
