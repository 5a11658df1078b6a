// Computes the cost of stragglers: the job is compared with itself when every operation takes the usual time of its
// type. Definitions: docs/analyses/slowdown.md.
#include "pipeline/measure/slowdown.h"

#include <algorithm>

#include "analyses/analysis.h"
#include "analyses/slowdown/problems.h"
#include "facts/pipeline_facts.h"
#include "model/pipeline_words.h"

namespace stageline {
namespace {

constexpr size_t kMaxCellsOfReport = 5'000'000;

std::vector<ColumnSpec> job_columns() {
  return {{"S", "slowdown S", Type::kReal,
           "Slowdown by stragglers: mean step time without delays ÷ mean step time of the ideal (eq. 1)"},
          {"M_S", "last stage M_S", Type::kReal,
           "Share of the loss that goes away when the last stage takes fair times; empty where S is below 1.03"},
          {"M_W", "slow workers M_W", Type::kReal,
           "Share of the loss that goes away when the slowest 3 % of the workers take fair times (eq. 5); empty "
           "where S is below 1.03"},
          {"ideal_s", "ideal, s", Type::kReal,
           "Mean step time in seconds when every operation takes the fair time of its type and nothing is late"},
          {"no_delay_s", "no delays, s", Type::kReal,
           "Mean step time in seconds with recorded durations and nothing launched late"},
          {"actual_s", "actual, s", Type::kReal, "Mean recorded step time in seconds"},
          {"delay_S", "delay S", Type::kReal, "Slowdown by late launches: actual_s ÷ no_delay_s"},
          {"steps", "steps", Type::kInteger, "Steps in the means"},
          {"operations", "operations", Type::kInteger, "Operations replayed, of all steps"}};
}

Table job_table(const StepGraph& graph, const Slowdown& s) {
  Table table("job", "What stragglers cost the job", job_columns());
  table.add_row(
      {s.s, s.m_s, s.m_w, s.ideal_ns / 1e9, s.no_delay_ns / 1e9, s.actual_ns / 1e9, s.delay_s,
       std::count_if(graph.steps.begin(), graph.steps.end(), [](const GraphStep& step) { return step.counts; }),
       std::ssize(graph)});
  return table;
}

std::vector<ColumnSpec> types_columns() {
  return {{"type", "type", Type::kText, "Type of operation; sends and receives of one direction together"},
          {"S", "S", Type::kReal,
           "Slowdown when this type alone takes its recorded time and all others the fair one (eq. 2)"},
          {"add_ns", "adds", Type::kDuration, "What that adds to the mean step time of the ideal"},
          {"operations", "operations", Type::kInteger, "Operations of the type"},
          {"mean_ns", "mean", Type::kDuration, "Mean duration without waiting; of several types their mean"},
          {"fair_ns", "fair", Type::kDuration,
           "Fair duration: mean of compute, median of communication, over all steps, stages and replicas; empty "
           "where types with different ones are judged together"}};
}

Table types_table(const StepGraph& graph, const Slowdown& s) {
  Table table("types", "By type of operation", types_columns());
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

std::vector<ColumnSpec> numbered_columns(const char* column, const char* help) {
  return {{column, column, Type::kInteger, help},
          {"S", "S", Type::kReal,
           "Slowdown when its operations alone take their recorded time and all others the fair one"},
          {"add_ns", "adds", Type::kDuration, "What that adds to the mean step time of the ideal"}};
}

std::vector<ColumnSpec> replicas_columns() { return numbered_columns("dp", "Data-parallel replica"); }

std::vector<ColumnSpec> stages_columns() { return numbered_columns("stage", "Pipeline stage"); }

Table numbered_table(const char* name, const char* title, std::vector<ColumnSpec> columns,
                     const std::vector<SlowdownPart>& parts) {
  Table table(name, title, std::move(columns));
  for (const SlowdownPart& part : parts) table.add_row({int64_t{part.number}, part.s, whole_ns(part.add_ns)});
  return table;
}

std::vector<ColumnSpec> workers_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          kPipelineColumn,
          {"stage", "stage", Type::kInteger, "Pipeline stage"},
          {"S_w", "S_w", Type::kReal, "The smaller of its replica's S and its stage's S (eq. 4)"},
          {"replaced", "in M_W", Type::kInteger, "1: one of the slowest 3 %, whose fair times M_W asks for"}};
}

Table workers_table(const Trace& trace, const Slowdown& s) {
  Table table("workers", "By worker", in_words_of(trace, workers_columns()));
  for (const SlowdownWorker& worker : s.workers) {
    const Part& part = trace.parts[worker.part];
    table.add_row(
        {int64_t{part.rank}, known_integer(part.dp), known_integer(part.stage), worker.s, int64_t{worker.replaced}});
  }
  return table;
}

std::vector<ColumnSpec> steps_columns() {
  return {{"step", "step", Type::kInteger, "Step number as the source has it"},
          {"counts", "counts", Type::kInteger, "1: in the means; 0: an outlier, left out of means and fair times"},
          {"S", "S", Type::kReal, "Step time without delays ÷ step time of the ideal"},
          {"delay_S", "delay S", Type::kReal, "Recorded step time ÷ step time without delays"},
          {"actual_ns", "actual", Type::kDuration, "Recorded step time"},
          {"no_delay_ns", "no delays", Type::kDuration, "With recorded durations and nothing launched late"},
          {"ideal_ns", "ideal", Type::kDuration, "With fair durations and nothing launched late"}};
}

Table steps_table(const StepGraph& graph, const Slowdown& s) {
  Table table("steps", "By step", steps_columns());
  for (size_t i = 0; i < graph.steps.size(); ++i)
    table.add_row({int64_t{graph.steps[i].step}, int64_t{graph.steps[i].counts},
                   s.step_no_delay_ns[i] / s.step_ideal_ns[i], graph.steps[i].span_ns / s.step_no_delay_ns[i],
                   graph.steps[i].span_ns, whole_ns(s.step_no_delay_ns[i]), whole_ns(s.step_ideal_ns[i])});
  return table;
}

std::vector<ColumnSpec> step_parts_columns() {
  return {{"step", "step", Type::kInteger, "Step number as the source has it"},
          {"by", "by", Type::kText, "type, dp or stage"},
          {"what", "what", Type::kText, "Which of them"},
          {"S", "S", Type::kReal,
           "Slowdown of this step when its operations alone take their recorded time and all others the fair "
           "one"}};
}

Table step_parts_table(const StepGraph& graph, const Slowdown& s) {
  Table table("step-parts", "By step, and type, replica or stage", step_parts_columns());
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    const int64_t step = graph.steps[i].step;
    for (const SlowdownPart& p : s.types) table.add_row({step, "type", p.name, p.step_s[i]});
    for (const SlowdownPart& p : s.replicas) table.add_row({step, "dp", std::to_string(p.number), p.step_s[i]});
    for (const SlowdownPart& p : s.stages) table.add_row({step, "stage", std::to_string(p.number), p.step_s[i]});
  }
  return table;
}

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
  result.tables.push_back(job_table(graph, s));
  result.tables.push_back(types_table(graph, s));
  result.tables.push_back(numbered_table("ranks", "By data-parallel replica", replicas_columns(), s.replicas));
  result.tables.push_back(numbered_table("stages", "By stage", stages_columns(), s.stages));
  result.tables.push_back(workers_table(*input.trace, s));
  result.tables.push_back(steps_table(graph, s));
  if (!input.for_report) result.tables.push_back(step_parts_table(graph, s));
  return result;
}

}  // namespace

extern const Analysis slowdown_analysis = {
    .name = "slowdown",
    .summary = "what stragglers cost: the job against itself with every operation as fast as its type usually is",
    .tables = {{"job", "S, M_S, M_W, step times ideal, without delays and actual", job_columns},
               {"types", "S by type of operation", types_columns},
               {"ranks", "S by data-parallel replica", replicas_columns},
               {"stages", "S by stage", stages_columns},
               {"workers", "S_w by rank: the heat map over replicas and stages", workers_columns},
               {"steps", "S and step times by step", steps_columns},
               {"step-parts", "S of every step by type, replica and stage; not in the report", step_parts_columns}},
    .run = run_slowdown,
    .across_ranks = true};

}  // namespace stageline
