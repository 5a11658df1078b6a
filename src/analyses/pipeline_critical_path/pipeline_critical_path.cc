// The chain of operations that a step waited for, and how much longer every other operation could take without delaying
// the step. Definitions: docs/analyses/pipeline-critical-path.md.
#include "analyses/analysis.h"
#include "facts/pipeline_facts.h"
#include "model/pipeline_words.h"
#include "model/statistics.h"
#include "pipeline/replay/graph_path.h"

namespace stageline {
namespace {

constexpr size_t kMaxCellsOfReport = 5'000'000;

using Wide = __int128;  // holds sums over steps of any times that a file may contain

// Returns the stage at the other end of a message; this is the sender's stage when the receiving end was not recorded.
// For a collective it is the stage of the member that came last, if that is another operation.
int32_t other_stage(const StepGraph& graph, const PathStretch& stretch) {
  if (stretch.piece != PathPiece::kTransfer) return kUnknown;
  if (is_message(graph.kind[stretch.op]) && graph.group(stretch.op) != kNoGroup) {
    const GraphGroup& group = graph.groups[graph.group(stretch.op)];
    return graph.stage(stretch.op == group.begin ? group.end - 1 : group.begin);
  }
  if (stretch.peer != stretch.op) return graph.stage(stretch.peer);
  if (graph.cell[stretch.op] != kNoCell || !is_message(graph.kind[stretch.op]) || graph.waits(stretch.op).empty())
    return kUnknown;
  return graph.stage(graph.waits(stretch.op)[0]);
}

struct ChosenStep {
  const GraphStep* step;
  std::vector<PathStretch> path;
};

Table shares_table(const StepGraph& graph, const std::vector<ChosenStep>& steps) {
  Table table(declared_table("pipeline-critical-path/shares"));
  std::map<std::tuple<int32_t, uint16_t, PathPiece, int32_t>, std::pair<Wide, int64_t>> sums;
  Wide span = 0;
  for (const ChosenStep& chosen : steps) {
    span += chosen.step->span_ns;
    for (const PathStretch& p : chosen.path) {
      auto& [time, count] = sums[{graph.stage(p.op), graph.type[p.op], p.piece, other_stage(graph, p)}];
      time += p.end_ns - p.start_ns;
      ++count;
    }
  }
  std::vector<decltype(sums)::const_iterator> order;
  for (auto it = sums.cbegin(); it != sums.cend(); ++it) order.push_back(it);
  sort_stably(order, [](const auto& a, const auto& b) { return a->second.first > b->second.first; });
  // Means are rounded so that they sum to the mean span.
  Wide left = span, shown = 0;
  const auto count = static_cast<Wide>(std::max<size_t>(1, steps.size()));
  for (const auto& it : order) {
    const auto& [stage, type, piece, from] = it->first;
    left -= it->second.first;
    const auto mean = static_cast<int64_t>((span - left) / count - shown);
    shown += mean;
    table.add_row({known_integer(stage), graph.types[type].name, std::string(path_piece_name(piece)),
                   known_integer(from), mean, share_of(it->second.first, span), it->second.second});
  }
  return table;
}

Table steps_pipeline_critical_path_table(const std::vector<ChosenStep>& steps, const StepGraph& graph,
                                         const Trace& trace) {
  Table table(declared_table("pipeline-critical-path/path-steps"));
  for (const ChosenStep& chosen : steps) {
    ByEnum<PathPiece, int64_t, 3> time = {};
    int64_t changes = 0;
    for (size_t i = 0; i < chosen.path.size(); ++i) {
      const PathStretch& p = chosen.path[i];
      time[p.piece] += p.end_ns - p.start_ns;
      if (i > 0 && graph.part[p.op] != graph.part[chosen.path[i - 1].op]) ++changes;
    }
    table.add_row({int64_t{chosen.step->step}, chosen.step->span_ns, time[0], time[1], time[2], changes,
                   chosen.path.empty() ? kNullInteger : int64_t{trace.parts[graph.part[chosen.path.back().op]].rank}});
  }
  return table;
}

void operation_values(const Trace& trace, const StepGraph& graph, int32_t step, uint32_t op,
                      std::vector<Table::Value>& row) {
  row.assign({int64_t{step}, int64_t{trace.parts[graph.part[op]].rank}, known_integer(graph.dp(op)),
              known_integer(graph.stage(op)), graph.types[graph.type[op]].name, known_integer(graph.micro_batch[op]),
              known_integer(graph.chunk[op])});
}

Table path_table(const Trace& trace, const StepGraph& graph, const ChosenStep& chosen) {
  TableSpec spec = in_words_of(trace, declared_table("pipeline-critical-path/path"));
  spec.title += " " + std::to_string(chosen.step->step);
  Table table(std::move(spec));
  std::vector<Table::Value> row;
  for (const PathStretch& p : chosen.path) {
    operation_values(trace, graph, chosen.step->step, p.op, row);
    row.insert(row.end(), {std::string(path_piece_name(p.piece)), known_integer(other_stage(graph, p)), p.start_ns,
                           p.end_ns - p.start_ns});
    table.add_row(row);
  }
  return table;
}

Table slack_table(const StepGraph& graph, const std::vector<ChosenStep>& steps, const std::vector<int64_t>& slack) {
  Table table(declared_table("pipeline-critical-path/slack"));
  std::map<std::pair<int32_t, uint16_t>, std::pair<std::vector<double>, double>> lists;
  for (const ChosenStep& chosen : steps)
    for (uint32_t i = chosen.step->begin; i < chosen.step->end; ++i) {
      auto& [list, dur] = lists[{graph.stage(i), graph.type[i]}];
      list.push_back(slack[i]);
      dur += graph.dur_ns[i];
    }
  for (auto& [key, entry] : lists) {
    auto& [list, dur] = entry;
    const int64_t count = list.size();
    const double min = *std::ranges::min_element(list);
    const int64_t critical = std::ranges::count(list, 0.0);
    table.add_row({known_integer(key.first), graph.types[key.second].name, count, critical, static_cast<int64_t>(min),
                   static_cast<int64_t>(median_of(std::move(list))), static_cast<int64_t>(dur / count)});
  }
  return table;
}

Table slack_cells_table(const Trace& trace, const StepGraph& graph, const std::vector<ChosenStep>& steps,
                        const std::vector<int64_t>& slack) {
  Table table(in_words_of(trace, declared_table("pipeline-critical-path/slack-cells")));
  std::vector<Table::Value> row;
  for (const ChosenStep& chosen : steps)
    for (uint32_t i = chosen.step->begin; i < chosen.step->end; ++i) {
      operation_values(trace, graph, chosen.step->step, i, row);
      row.insert(row.end(), {graph.start_ns[i], static_cast<int64_t>(graph.dur_ns[i]), slack[i]});
      table.add_row(row);
    }
  return table;
}

// Returns the step whose path is shown: among the steps that count, the one of median length.
const ChosenStep& usual_step(const std::vector<ChosenStep>& steps) {
  auto order = mapped<const ChosenStep*>(steps, [&](const ChosenStep& chosen) { return &chosen; });
  sort_stably(order, {}, [](const ChosenStep* a) { return a->step->span_ns; });
  return *order[(order.size() - 1) / 2];
}

}  // namespace

Result<AnalysisResult> run_pipeline_critical_path(const AnalysisInput& input) {
  AnalysisResult result;
  if (input.for_report && input.trace->cells.size() > kMaxCellsOfReport)
    return make_error(ErrorCode::kLimit, "a report of more than five million cells is made without the critical path",
                      "ask for it alone: stageline analyze pipeline-critical-path");
  TRY(wanted, input.options.integer("step", INT64_MIN));
  const RunGraph& made = graph_of(input.run(), LaunchRule::kInOrder);
  result.notes.merge(made.notes);
  if (!made.graph) return *made.error;
  const StepGraph* graph = made.graph.get();
  const bool one = input.options.has("step");
  std::vector<ChosenStep> steps;
  for (const GraphStep& step : graph->steps)
    if (one ? step.step == *wanted : step.counts) steps.push_back({&step, critical_path(*graph, step)});
  if (steps.empty())
    return make_error(ErrorCode::kUsage, "there is no step " + std::to_string(*wanted) + " in this run",
                      "its steps are " + std::to_string(graph->steps.front().step) + " to " +
                          std::to_string(graph->steps.back().step));
  const std::vector<int64_t> slack = slack_ns(*graph);
  result.add(shares_table(*graph, steps), steps_pipeline_critical_path_table(steps, *graph, *input.trace),
             slack_table(*graph, steps, slack), path_table(*input.trace, *graph, usual_step(steps)));
  if (!input.for_report) result.tables.push_back(slack_cells_table(*input.trace, *graph, steps, slack));
  return result;
}

}  // namespace stageline
