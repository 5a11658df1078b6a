#include "pipeline/replay/step_graph.h"

#include "base/error_words.h"
#include "base/parallel.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "pipeline/replay/problems.h"
#include "pipeline/replay/step_draft.h"

namespace stageline {
namespace {

// When a replay misses the recorded steps by more than this share of them, no result of replays is reported for the
// run.
constexpr double kMaxMiss = 0.01;

// Returns the recorded span of a step's work, by timestamps or by common times, whichever is shorter: a graph may use
// either.
double recorded_span(const Trace& trace, const StepRange& range) {
  const Cells& cells = trace.cells;
  Span stamped, common;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!is_compute(cells.kind[i]) && cells.kind[i] != CellKind::kOptimizer) continue;
    stamped.add(cells.start_ns[i], cells.end_ns[i]);
    if (trace.alignment == AlignState::kMapped)
      common.add(trace.common_ns(cells.part[i], cells.start_ns[i]), trace.common_ns(cells.part[i], cells.end_ns[i]));
  }
  return trace.alignment == AlignState::kMapped ? std::min(stamped.length_ns(), common.length_ns())
                                                : stamped.length_ns();
}

// Returns for each step of the graph by how much a replay of the recorded times misses it. It counts the work (compute,
// optimizers) that the replayed step lacks, and the time that its waits add or lose. O(cells + operations + waits).
std::vector<double> replay_misses(const Trace& trace, const StepGraph& g) {
  std::vector<StepRange> ranges = step_ranges(trace.cells);
  std::erase_if(ranges, [](const StepRange& range) { return range.step == kUnknown; });
  std::vector<double> recorded(ranges.size());
  parallel_for(ranges.size(), [&](size_t r) { recorded[r] = recorded_span(trace, ranges[r]); });
  const std::vector<double> replayed = replay_world(g, [&](const WorldStretch& s) {
    std::copy(g.dur_ns.begin() + s.begin, g.dur_ns.begin() + s.end, s.dur_ns);
    std::copy(g.delay_ns.begin() + s.begin, g.delay_ns.begin() + s.end, s.delay_ns);
  });
  std::vector<double> missed(g.steps.size());
  size_t r = 0;  // both are in order of steps
  for (size_t s = 0; s < g.steps.size(); ++s) {
    const double span_ns = g.steps[s].span_ns;
    missed[s] = std::abs(replayed[s] - span_ns);
    while (r < ranges.size() && ranges[r].step < g.steps[s].step) ++r;
    if (r < ranges.size() && ranges[r].step == g.steps[s].step) missed[s] = std::max(missed[s], recorded[r] - span_ns);
  }
  return missed;
}

// If in one group of a thousand or more a member had ended before another began, the timestamps are not of one clock.
constexpr double kWrongShare = 1e-3;
// Where at most one step of this many is not replayed to kMaxMiss, as one in which a clock was set, the others count.
constexpr size_t kFewMissed = 8;

bool contradicts(const std::vector<StepDraft>& drafts) {
  int64_t groups = 0, wrong = 0;
  for (const StepDraft& draft : drafts) {
    std::vector<int64_t> latest(draft.group_count, INT64_MIN), first_end(draft.group_count, INT64_MAX);
    for (size_t i = 0; i < draft.ops.size(); ++i) {
      const uint32_t g = draft.group[i];
      if (g == kNoGroup) continue;
      latest[g] = std::max(latest[g], draft.ops[i].start_ns);
      first_end[g] = std::min(first_end[g], draft.ops[i].end_ns);
    }
    for (uint32_t g = 0; g < draft.group_count; ++g) wrong += first_end[g] < latest[g] ? 1 : 0;
    groups += draft.group_count;
  }
  return wrong > kWrongShare * groups;
}

// Where only forwards were recorded, and a rank is idle within steps for longer than it works, it did work that was
// not recorded. Forwards of steps that overlap flow without backwards, as in inference.
bool lacks_backwards(const StepGraph& graph) {
  std::map<int32_t, double> idle;  // of each rank beyond its work
  for (size_t i = 0; i < graph.size(); ++i) {
    if (is_backward(graph.kind[i]) || graph.kind[i] == CellKind::kWeightGrad) return false;
    if (is_compute(graph.kind[i])) idle[graph.part[i]] += graph.delay_ns[i] - graph.dur_ns[i];
  }
  for (size_t s = 1; s < graph.steps.size(); ++s)
    if (graph.steps[s].start_ns < graph.steps[s - 1].start_ns + graph.steps[s - 1].span_ns) return false;
  return std::ranges::any_of(idle, [](const auto& rank) { return rank.second > 0; });
}

void leave_out_outliers(const PipelineSums& sums, StepGraph& graph, Diagnostics& notes) {
  int64_t left = 0;
  for (GraphStep& step : graph.steps)
    if (sums.is_outlier(step.step)) ++left;
  if (left == 0 || left == std::ssize(graph.steps)) return;
  for (GraphStep& step : graph.steps) step.counts &= !sums.is_outlier(step.step);
  notes.add(problem::graph_outlier_steps, {}, left);
}

// Returns nullopt if messages and collectives were not recorded, or have names from which waits cannot be derived.
std::optional<StepGraph> graph_of_operations(const Trace& trace, Diagnostics& notes, LaunchRule rule) {
  std::vector<GraphType> types;
  std::vector<StepDraft> drafts = draft_operations(trace, false, rule, types, notes);
  if (!drafts.empty() && trace.alignment == AlignState::kMapped && contradicts(drafts)) {
    types.clear();
    Diagnostics again;  // would repeat the notes of the first attempt
    drafts = draft_operations(trace, true, rule, types, again);
  }
  if (drafts.empty()) return std::nullopt;
  StepDrafts made{std::move(types), true, false, {}, [&](size_t s, StepDraft& draft) { draft = std::move(drafts[s]); }};
  for (const StepDraft& draft : drafts) made.op_count.push_back(static_cast<uint32_t>(draft.ops.size()));
  return assemble_graph(trace, std::move(made), GraphSource::kOperations, notes);
}

}  // namespace

Result<StepGraph> build_step_graph(const Trace& trace, const PipelineSums& sums, Diagnostics& notes, LaunchRule rule) {
  if (!trace.comparable())
    return worded_error(ErrorCode::kBadInput, "refused.clocks_not_comparable", {}, {},
                        "--align auto puts the ranks on one clock, where messages or gaps tell it");
  Diagnostics of_operations, of_cells;
  double min_miss = std::numeric_limits<double>::infinity();
  const auto fits = [&](StepGraph& graph, Diagnostics& own_notes) {
    const std::vector<double> missed = replay_misses(trace, graph);
    double miss = 0, all = 0;
    size_t others = 0;  // steps of which a stamp is wrong
    for (size_t s = 0; s < missed.size(); ++s) {
      miss += missed[s], all += graph.steps[s].span_ns;
      others += missed[s] > kMaxMiss * graph.steps[s].span_ns;
    }
    miss /= std::max(all, 1.0);
    min_miss = std::min(min_miss, miss);
    if (miss <= kMaxMiss) return true;
    if (kFewMissed * others > missed.size()) return false;
    for (size_t s = 0; s < missed.size(); ++s) graph.steps[s].counts = missed[s] <= kMaxMiss * graph.steps[s].span_ns;
    own_notes.add(problem::graph_missed_steps, {}, others);
    return true;
  };
  if (std::optional<StepGraph> graph = graph_of_operations(trace, of_operations, rule);
      graph && fits(*graph, of_operations)) {
    notes.merge(of_operations);
    return std::move(*graph);
  }
  if (StepDrafts drafts = draft_cells(trace, of_cells); !drafts.op_count.empty()) {
    StepGraph graph = assemble_graph(trace, std::move(drafts), GraphSource::kComputeCells, of_cells);
    if (lacks_backwards(graph)) return worded_error(ErrorCode::kBadInput, "refused.backwards_unrecorded");
    if (fits(graph, of_cells)) {
      leave_out_outliers(sums, graph, of_cells);
      notes.merge(of_cells);
      return graph;
    }
  }
  if (std::isinf(min_miss))
    return worded_error(
        ErrorCode::kBadInput, "refused.no_numbered_steps", {},
        trace.parts.empty() ? Where{} : Where{trace.parts.front().source},
        "work counts when it has a step: a column, or a range around it; stageline info shows what was read");
  return worded_error(ErrorCode::kBadInput, "refused.replay_misses_run", Args().set("miss", percent(min_miss)), {},
                      "stageline info shows what is odd about the recording");
}

StepGraph graph_without_waits(const Trace& trace) {
  Diagnostics notes;  // on waits, of which there are none here
  StepDrafts drafts = draft_cells(trace, notes);
  drafts.grouped = false;
  drafts.make = [make = std::move(drafts.make)](size_t step, StepDraft& draft) {
    make(step, draft);
    for (DraftOp& op : draft.ops)
      if (op.cell == kNoCell) op.end_ns = op.start_ns;  // nothing says when its message was sent
    draft.waits.clear();
    draft.group.assign(draft.ops.size(), kNoGroup);
    draft.group_count = 0;
  };
  return assemble_graph(trace, std::move(drafts), GraphSource::kNone, notes);
}

OpTimes recorded_times(const StepGraph& graph) { return {graph.dur_ns, graph.delay_ns}; }

std::vector<double> fair_times(const StepGraph& graph) {
  std::vector<std::vector<double>> all(graph.types.size());
  std::vector<double> fair(graph.types.size(), 0), count(graph.types.size(), 0);
  std::vector<size_t> kept(graph.types.size(), 0);
  for (const GraphStep& step : graph.steps)
    for (size_t i = step.begin; step.counts && i < step.end; ++i) ++kept[graph.type[i]];
  for (size_t t = 0; t < all.size(); ++t)  // grown step by step they would take half as much again
    if (graph.types[t].communicates) all[t].reserve(kept[t]);
  for (const GraphStep& step : graph.steps) {
    if (!step.counts) continue;
    for (size_t i = step.begin; i < step.end; ++i) {
      const uint16_t t = graph.type[i];
      if (graph.types[t].communicates) {
        all[t].push_back(graph.dur_ns[i]);
      } else {
        fair[t] += graph.dur_ns[i];
        count[t] += 1;
      }
    }
  }
  for (size_t t = 0; t < fair.size(); ++t) {
    if (graph.types[t].communicates) {
      if (!all[t].empty()) fair[t] = median_in_place(all[t]);
    } else if (count[t] > 0) {
      fair[t] /= count[t];
    }
  }
  return fair;
}

OpTimes ideal_times(const StepGraph& graph) {
  const std::vector<double> fair = fair_times(graph);
  OpTimes out{std::vector<double>(graph.size()), std::vector<double>(graph.size(), 0)};
  for (size_t i = 0; i < graph.size(); ++i) out.dur_ns[i] = fair[graph.type[i]];
  return out;
}

std::vector<double> launch_delays(const StepGraph& graph) {
  const size_t types = graph.types.size();
  std::vector<std::vector<double>> min(types);
  std::vector<double> of_step(graph.steps.size() * types, kNaN), launch_ns(types, 0);
  parallel_for(graph.steps.size(), [&](size_t s) {
    double* const own = of_step.data() + s * types;
    for (uint32_t op = graph.steps[s].begin; op < graph.steps[s].end; ++op)
      if (!is_compute(graph.kind[op]) && graph.delay_ns[op] >= 0 && !(own[graph.type[op]] <= graph.delay_ns[op]))
        own[graph.type[op]] = graph.delay_ns[op];
  });
  for (size_t i = 0; i < of_step.size(); ++i)
    if (!std::isnan(of_step[i])) min[i % types].push_back(of_step[i]);
  for (size_t t = 0; t < types; ++t)
    if (!min[t].empty()) launch_ns[t] = std::max(0.0, median_of(std::move(min[t])));
  return launch_ns;
}

}  // namespace stageline
