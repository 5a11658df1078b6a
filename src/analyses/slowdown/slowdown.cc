// Computes the cost of stragglers: the job is compared with itself when every operation takes the usual time of its
// type. Definitions: docs/analyses/slowdown.md.
#include "pipeline/measure/slowdown.h"

#include "analyses/analysis.h"
#include "analyses/slowdown/problems.h"
#include "facts/pipeline_facts.h"
#include "model/pipeline_words.h"

namespace stageline {
namespace {

constexpr size_t kMaxCellsOfReport = 5'000'000;

Table job_table(const StepGraph& graph, const Slowdown& s) {
  Table table(declared_table("slowdown/job"));
  table.add_row({s.s, s.m_s, s.m_w, s.ideal_ns / 1e9, s.no_delay_ns / 1e9, s.actual_ns / 1e9, s.delay_s,
                 std::ranges::count_if(graph.steps, [](const GraphStep& step) { return step.counts; }),
                 std::ssize(graph)});
  return table;
}

Table types_table(const StepGraph& graph, const Slowdown& s) {
  Table table(declared_table("slowdown/types"));
  for (const SlowdownPart& part : s.types) {
    int64_t count = 0, members = 0;
    double sum = 0, fair = 0;
    for (size_t t = 0; t < s.operations.size(); ++t) {
      if (slowdown_group(graph.types[t], graph.source) != part.name) continue;
      count += s.operations[t].count;
      sum += s.operations[t].mean_ns * s.operations[t].count;
      fair = s.operations[t].fair_ns;
      ++members;
    }
    table.add_row({part.name, part.s, whole_ns(part.add_ns), count, count > 0 ? whole_ns(sum / count) : kNullInteger,
                   members == 1 ? whole_ns(fair) : kNullInteger});
  }
  return table;
}

Table numbered_table(const TableSpec& spec, const std::vector<SlowdownPart>& parts) {
  Table table(spec);
  for (const SlowdownPart& part : parts) table.add_row({int64_t{part.number}, part.s, whole_ns(part.add_ns)});
  return table;
}

Table workers_table(const Trace& trace, const Slowdown& s) {
  Table table(in_words_of(trace, declared_table("slowdown/workers")));
  for (const SlowdownWorker& worker : s.workers) {
    const Part& part = trace.parts[worker.part];
    table.add_row(
        {int64_t{part.rank}, known_integer(part.dp), known_integer(part.stage), worker.s, int64_t{worker.replaced}});
  }
  return table;
}

Table steps_table(const StepGraph& graph, const Slowdown& s) {
  Table table(declared_table("slowdown/steps"));
  for (size_t i = 0; i < graph.steps.size(); ++i)
    table.add_row({int64_t{graph.steps[i].step}, int64_t{graph.steps[i].counts},
                   s.step_no_delay_ns[i] / s.step_ideal_ns[i], graph.steps[i].span_ns / s.step_no_delay_ns[i],
                   graph.steps[i].span_ns, whole_ns(s.step_no_delay_ns[i]), whole_ns(s.step_ideal_ns[i])});
  return table;
}

Table step_parts_table(const StepGraph& graph, const Slowdown& s) {
  Table table(declared_table("slowdown/step-parts"));
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    const int64_t step = graph.steps[i].step;
    for (const SlowdownPart& p : s.types) table.add_row({step, "type", p.name, p.step_s[i]});
    for (const SlowdownPart& p : s.replicas) table.add_row({step, "dp", std::to_string(p.number), p.step_s[i]});
    for (const SlowdownPart& p : s.stages) table.add_row({step, "stage", std::to_string(p.number), p.step_s[i]});
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_slowdown(const AnalysisInput& input) {
  AnalysisResult result;
  if (input.for_report && input.trace->cells.size() > kMaxCellsOfReport)
    return make_error(ErrorCode::kLimit, "a report of more than five million cells is made without slowdown",
                      "ask for it alone: stageline analyze slowdown");
  const RunGraph& made = graph_of(input.run(), LaunchRule::kFree);
  result.notes.merge(made.notes);
  if (!made.graph) return *made.error;
  const StepGraph& graph = *made.graph;
  const Slowdown& s = slowdown_of(input.run());
  if (!(s.s >= kMinSlowdown)) result.notes.add(problem::slowdown_little);
  if (s.replicas.empty()) result.notes.add(problem::slowdown_replicas);
  result.add(job_table(graph, s), types_table(graph, s), numbered_table(declared_table("slowdown/ranks"), s.replicas),
             numbered_table(declared_table("slowdown/stages"), s.stages), workers_table(*input.trace, s),
             steps_table(graph, s));
  if (!input.for_report) result.tables.push_back(step_parts_table(graph, s));
  return result;
}

}  // namespace stageline
