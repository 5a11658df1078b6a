// The first numbers of a pipeline: spans, busy time, both bubbles, and the cost of F, B, W for each stage. Definitions:
// docs/analyses/pipeline-summary.md.
#include <cmath>
#include <span>
#include <string>

#include "analyses/analysis.h"
#include "base/error_words.h"
#include "facts/pipeline_facts.h"
#include "model/pipeline_words.h"
#include "model/statistics.h"
#include "pipeline/sums/pipeline_sums.h"
#include "pipeline/sums/stage_costs.h"
#include "pipeline/sums/step_ratios.h"

namespace stageline {
namespace {

std::vector<ColumnSpec> pipeline_summary_ranks_columns() {
  return {
      {"step", "step", Type::kInteger, "Step number as the source has it"},
      kPipelineColumn,
      {"stage", "stage", Type::kInteger, "Pipeline stage"},
      {"rank", "rank", Type::kInteger, "Global rank"},
      {"cells", "cells", Type::kInteger, "Cells of all kinds in this step"},
      {"span_ns", "span", Type::kDuration,
       "First start to last end of the step, over all ranks and cells but messages"},
      {"pipeline_span_ns", "pipeline", Type::kDuration,
       "First start to last end of compute cells (F, B, I, W) in the step, over all ranks"},
      {"own_span_ns", "own span", Type::kDuration, "First start to last end of this rank's compute cells"},
      {"busy_ns", "busy", Type::kDuration, "Union of this rank's compute cells"},
      {"span_bubble_ns", "span bubble", Type::kDuration, "Pipeline span minus busy: what the job pays"},
      {"span_bubble_share", "span bubble", Type::kShare, "Span bubble as a share of the pipeline span"},
      {"inner_bubble_ns", "inner bubble", Type::kDuration, "Own span minus busy: what the zero-bubble papers count"},
      {"inner_bubble_share", "inner bubble", Type::kShare, "Inner bubble as a share of the own span"}};
}

Table ranks_pipeline_summary_table(const Trace& trace, const PipelineSums& sums) {
  Table table("ranks", "Ranks, by step", in_words_of(trace, pipeline_summary_ranks_columns()));
  size_t s = 0;
  for (const RankSums& rank : sums.ranks) {
    while (sums.steps[s].step != rank.step) ++s;
    const StepSums& step = sums.steps[s];
    const Part& part = trace.parts[rank.part];
    const int64_t own = rank.last_ns - rank.first_ns;
    table.add_row({int64_t{rank.step}, known_integer(part.dp), known_integer(part.stage), int64_t{part.rank},
                   rank.cells, step.span_ns(), step.pipeline_span_ns(), own, rank.busy_ns, rank.span_bubble_ns,
                   share_of(rank.span_bubble_ns, step.pipeline_span_ns()), rank.inner_bubble_ns,
                   share_of(rank.inner_bubble_ns, own)});
  }
  return table;
}

std::vector<ColumnSpec> pipeline_summary_stages_columns() {
  return {{"stage", "stage", Type::kInteger, "Pipeline stage"},
          {"kind", "kind", Type::kText,
           "F forward, B full backward, I input gradient, W weight gradient, F&B overlapped; "
           "all: mean forward plus backward time per backward, that is per micro-batch and chunk"},
          {"count", "count", Type::kInteger, "Cells over all steps, ranks and replicas of the stage"},
          {"mean_ns", "mean", Type::kDuration, "Mean duration"},
          {"p50_ns", "p50", Type::kDuration, "Median duration"},
          {"p95_ns", "p95", Type::kDuration, "95th percentile, linear between order statistics"},
          {"ratio_to_median", "to median", Type::kRatio, "Mean ÷ median over the stages' means of this kind"}};
}

Table stages_table(const Trace& trace) {
  Table table("stages", "Stages, cost of one cell", pipeline_summary_stages_columns());
  const auto rounded = [](double ns) { return static_cast<int64_t>(std::llround(ns)); };
  const std::vector<StageCost> costs = stage_costs(trace);
  const std::vector<StageLoad> loads = stage_loads(costs);
  size_t next = 0;
  for (const StageLoad& load : loads) {
    int64_t count = 0;
    for (; next < costs.size() && costs[next].stage == load.stage; ++next) {
      const StageCost& c = costs[next];
      count += c.count;
      table.add_row({known_integer(c.stage), std::string(kind_code(c.kind)), c.count, rounded(c.mean_ns),
                     rounded(c.p50_ns), rounded(c.p95_ns), c.ratio_to_median});
    }
    table.add_row({known_integer(load.stage), std::string("all"), count, rounded(load.per_micro_batch_ns), kNullInteger,
                   kNullInteger, load.ratio_to_median});
  }
  return table;
}

std::vector<ColumnSpec> pipeline_summary_steps_columns() {
  return {{"step", "step", Type::kInteger, "Step number as the source has it"},
          {"start_ns", "start", Type::kTime, "First start of its cells but messages, on the clock of the source"},
          {"span_ns", "span", Type::kDuration,
           "First start to last end of the step, over all ranks and cells but messages"},
          {"pipeline_span_ns", "pipeline", Type::kDuration, "The same over compute cells (F, B, I, W)"},
          {"busy_share", "busy", Type::kShare, "Mean over ranks of busy ÷ pipeline span"},
          {"span_bubble_share", "span bubble", Type::kShare, "Mean over ranks of span bubble ÷ pipeline span"},
          {"max_span_bubble_share", "worst", Type::kShare, "Largest span bubble of a rank ÷ pipeline span"}};
}

Table steps_pipeline_summary_table(const PipelineSums& sums) {
  Table table("steps", "Steps", pipeline_summary_steps_columns());
  size_t r = 0;
  for (const StepSums& step : sums.steps) {
    const size_t begin = r;
    int64_t worst = 0;
    for (; r < sums.ranks.size() && sums.ranks[r].step == step.step; ++r)
      worst = std::max(worst, sums.ranks[r].span_bubble_ns);
    const double bubble = bubble_of(step, std::span(sums.ranks).subspan(begin, r - begin));
    table.add_row({int64_t{step.step}, step.start_ns, step.span_ns(), step.pipeline_span_ns(), 1 - bubble, bubble,
                   share_of(worst, step.pipeline_span_ns())});
  }
  return table;
}

Result<AnalysisResult> run_pipeline_summary(const AnalysisInput& input) {
  const Trace& trace = *input.trace;
  const PipelineSums& sums = sums_of(input.run());
  if (sums.ranks.empty())
    return said_error(ErrorCode::kBadInput, "refused.no_pipeline_cells.summary", {}, {},
                      "stageline info says what was read");
  AnalysisResult result;
  result.tables.push_back(ranks_pipeline_summary_table(trace, sums));
  result.tables.push_back(stages_table(trace));
  result.tables.push_back(steps_pipeline_summary_table(sums));
  return result;
}

}  // namespace

extern const Analysis pipeline_summary_analysis = {
    .name = "pipeline-summary",
    .summary = "span, busy time, span and inner bubble per step and rank; cost of F, B, W per stage",
    .tables = {{"ranks", "one row per step and rank", pipeline_summary_ranks_columns},
               {"stages", "one row per stage and kind", pipeline_summary_stages_columns},
               {"steps", "one row per step", pipeline_summary_steps_columns}},
    .run = run_pipeline_summary,
    .across_ranks = true};

}  // namespace stageline
