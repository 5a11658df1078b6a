#include "pipeline/step_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "model/stage_costs.h"
#include "pipeline/step_draft.h"

namespace stageline {

Result<StepGraph> build_step_graph(const Trace& trace, Diagnostics& notes) {
  if (!trace.comparable())
    return Error{ErrorCode::kBadInput,
                 "every rank counts time from its own zero, so nobody can say who waited for whom",
                 {},
                 "--align auto puts the ranks on one clock, where messages or gaps tell it"};
  std::vector<GraphType> types;
  std::vector<StepDraft> drafts = draft_operations(trace, types, notes);
  const GraphSource source = drafts.empty() ? GraphSource::kComputeCells : GraphSource::kOperations;
  if (drafts.empty()) drafts = draft_cells(trace, types, notes);
  if (drafts.empty())
    return Error{ErrorCode::kBadInput, "no work of a pipeline that belongs to a numbered step was found", {}, ""};
  return assemble_graph(trace, std::move(drafts), std::move(types), source, notes);
}

OpTimes recorded_times(const StepGraph& graph) { return {graph.dur_ns, graph.delay_ns}; }

OpTimes times_without_delay(const StepGraph& graph) { return {graph.dur_ns, std::vector<double>(graph.size(), 0)}; }

OpTimes ideal_times(const StepGraph& graph) {
  std::vector<std::vector<double>> all(graph.types.size());
  std::vector<double> fair(graph.types.size(), 0), count(graph.types.size(), 0);
  for (size_t i = 0; i < graph.size(); ++i) {
    const uint16_t t = graph.type[i];
    if (graph.types[t].communicates) {
      all[t].push_back(graph.dur_ns[i]);
    } else {
      fair[t] += graph.dur_ns[i];
      count[t] += 1;
    }
  }
  for (size_t t = 0; t < fair.size(); ++t) {
    if (graph.types[t].communicates) {
      if (!all[t].empty()) fair[t] = median_of(std::move(all[t]));
    } else if (count[t] > 0) {
      fair[t] /= count[t];
    }
  }
  OpTimes out{std::vector<double>(graph.size()), std::vector<double>(graph.size(), 0)};
  for (size_t i = 0; i < graph.size(); ++i) out.dur_ns[i] = fair[graph.type[i]];
  return out;
}

double WorldTimes::mean_ns(size_t world) const {
  if (worlds == 0 || step_ns.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  const size_t steps = step_ns.size() / worlds;
  for (size_t s = 0; s < steps; ++s) sum += ns(s, world);
  return sum / static_cast<double>(steps);
}

}  // namespace stageline
