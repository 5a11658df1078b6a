// The first numbers of a pipeline: spans, busy time, both bubbles, and the cost of F, B, W for each stage. Definitions:
// docs/analyses/pipeline-summary.md.
#include "analyses/analysis.h"
#include "base/error_words.h"
#include "facts/pipeline_facts.h"
#include "model/pipeline_words.h"
#include "model/statistics.h"
#include "pipeline/sums/stage_costs.h"
#include "pipeline/sums/step_ratios.h"

namespace stageline {
namespace {

Table ranks_pipeline_summary_table(const Trace& trace, const PipelineSums& sums) {
  Table table(in_words_of(trace, declared_table("pipeline-summary/ranks")));
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

Table stages_table(const Trace& trace) {
  Table table(declared_table("pipeline-summary/stages"));
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

Table steps_pipeline_summary_table(const PipelineSums& sums) {
  Table table(declared_table("pipeline-summary/steps"));
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

}  // namespace

Result<AnalysisResult> run_pipeline_summary(const AnalysisInput& input) {
  const Trace& trace = *input.trace;
  const PipelineSums& sums = sums_of(input.run());
  if (sums.ranks.empty())
    return worded_error(ErrorCode::kBadInput, "refused.no_pipeline_cells.summary", {}, {},
                        "stageline info says what was read");
  AnalysisResult result;
  return result.with(ranks_pipeline_summary_table(trace, sums), stages_table(trace),
                     steps_pipeline_summary_table(sums));
}

}  // namespace stageline
