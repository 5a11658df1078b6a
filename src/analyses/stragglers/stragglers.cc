// Which rank, stage or link delays the others, and how that shows. Definitions: docs/analyses/stragglers.md.
#include "pipeline/measure/stragglers.h"

#include <algorithm>
#include <cmath>

#include "analyses/analysis.h"
#include "analyses/stragglers/problems.h"
#include "base/number.h"
#include "diagnosis/causes/cause_findings.h"
#include "diagnosis/causes/causes.h"
#include "diagnosis/what_if/layer_price.h"
#include "facts/pipeline_facts.h"
#include "facts/straggler_facts.h"
#include "model/pipeline_words.h"
#include "pipeline/measure/slowdown.h"
#include "pipeline/replay/theory.h"

namespace stageline {
namespace {

// S_w needs a replay for every replica and stage. When operations times replays exceed this limit, it is left out here;
// the analysis `slowdown` computes it.
constexpr double kMaxWork = 4e9;

struct CauseRow {
  double price_ns;
  std::vector<Table::Value> cells;
};

std::vector<ColumnSpec> straggler_causes_columns() {
  return {
      {"cause", "cause", Type::kText,
       "slow worker, slow stage, slow link, long sequences, pauses, late launches, late starts, wrong order, "
       "unsplit backwards or slow step"},
      {"rank", "rank", Type::kInteger,
       "Global rank of a worker, of pauses that one rank alone has, and of most late starts"},
      {"stage", "stage", Type::kInteger, "Stage of the worker, the slow stage, or the one that receives"},
      {"step", "step", Type::kInteger, "The slow step"},
      {"ratio", "ratio", Type::kRatio, "Its time to the others', of a slow step to the median step"},
      {"count", "count", Type::kInteger,
       "Steps in which a worker or stage is slow; late cells, long micro-batches, lists of work"},
      {"of", "of", Type::kInteger, "Of so many"},
      {"each_ns", "each", Type::kDuration, "Mean length of a pause or late start; of late launches the usual delay"},
      {"lost_ns", "lost", Type::kDuration,
       "Mean step as replayed minus the replay without the cause; of a slow step its excess over all steps"},
      {"lost_share", "lost", Type::kShare, "The same as a share of the mean step"},
      {"error_ns", "uncertainty", Type::kDuration, "Standard error of that over steps"},
      {"saving_ns", "saving", Type::kDuration,
       "What a fix brings: less than is lost where work can only be evened out"},
      {"saving_share", "saving", Type::kShare, "The same as a share of the mean step"},
      {"words", "in words", Type::kText, "The cause in a sentence, as explain has it"}};
}

// Lists the causes that `explain` names, with its numbers, and the steps that are slow as a whole.
Table causes_table(const Trace& trace, const Stragglers& s, const CauseList& list, const Recognition& recognition) {
  Table table("straggler-causes", "What delays the ranks", straggler_causes_columns());
  const auto share = [&](double ns) { return list.step_ns > 0 ? ns / list.step_ns : std::nan(""); };
  std::vector<CauseRow> rows;
  for (const Cause& c : list.causes) {
    const CauseFigures& f = c.figures;
    const double saving_ns = c.price.best_ns();
    rows.push_back({saving_ns,
                    {std::string(c.kind->name), known_integer(f.rank), known_integer(f.stage), kNullInteger,
                     f.ratio > 0 ? f.ratio : std::nan(""), f.count > 0 ? f.count : kNullInteger,
                     f.of > 0 ? f.of : kNullInteger, f.each_ns > 0 ? whole_ns(f.each_ns) : kNullInteger,
                     whole_ns(c.price.lost_ns), share(c.price.lost_ns), whole_ns(c.price.lost_error_ns),
                     whole_ns(saving_ns), share(saving_ns), cause_finding(trace, list, c, recognition).title}});
  }
  for (const SlowStep& step : s.slow_steps) {
    if (!(share(step.lost_ns) >= kMinLost)) continue;
    rows.push_back(
        {step.lost_ns,
         {std::string("slow step"), kNullInteger, kNullInteger, int64_t{step.step}, step.ratio, kNullInteger,
          kNullInteger, kNullInteger, whole_ns(step.lost_ns), share(step.lost_ns), kNullInteger, whole_ns(step.lost_ns),
          share(step.lost_ns),
          words("straggler.slow_step", Args().set("step", int64_t{step.step}).set("ratio", fixed(step.ratio, 2)))}});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const CauseRow& a, const CauseRow& b) { return a.price_ns > b.price_ns; });
  for (CauseRow& row : rows) table.add_row(std::move(row.cells));
  return table;
}

std::vector<ColumnSpec> straggler_workers_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          kPipelineColumn,
          {"stage", "stage", Type::kInteger, "Pipeline stage"},
          {"steps", "steps", Type::kInteger, "Steps with compute cells; steps far longer than most are left out"},
          {"busy_ns", "busy", Type::kDuration, "Union of its compute cells in a step, mean over steps"},
          {"busy_ratio", "to stage", Type::kRatio, "Busy ÷ mean busy of all workers of its stage"},
          {"peer_ratio", "to peers", Type::kRatio,
           "To the median of the other workers of its stage: the smaller of busy and of its usual cells (medians "
           "by kind)"},
          {"error", "error", Type::kShare, "Standard error of that ratio, by the scatter of its cells"},
          {"S_w", "S_w", Type::kReal, "Slowdown by this worker, as the analysis slowdown has it"},
          {"slow_steps", "slow steps", Type::kInteger,
           "Steps in which it is at least 1.05 × the median of its peers, and beyond four standard errors"},
          {"late_ns", "starts late", Type::kDuration, "Lower quartile of what its cells start later than they could"},
          {"pauses", "pauses", Type::kInteger, "Cells that start later by a quarter of its usual cell or more"},
          {"pause_ns", "paused", Type::kDuration, "Sum of the pauses over all steps"},
          {"period_ns", "period", Type::kDuration, "Usual time between pauses where it is steady"},
          {"verdict", "verdict", Type::kText,
           "fine, persistent, now and then, late launches, pauses, or no peer (nothing to compare with)"},
          {"words", "in words", Type::kText, "The verdict in words"}};
}

Table workers_table(const Trace& trace, const Stragglers& s) {
  Table table("straggler-workers", "Workers against their peers", in_words_of(trace, straggler_workers_columns()));
  for (const StragglerWorker& w : s.workers) {
    const Part& part = trace.parts[w.part];
    table.add_row({int64_t{part.rank}, known_integer(part.dp), known_integer(part.stage), w.steps, whole_ns(w.busy_ns),
                   w.busy_ratio, w.ratio, w.error, w.s_w, w.slow_steps, whole_ns(w.late_ns), w.pauses,
                   whole_ns(w.pause_ns), whole_ns(w.period_ns), std::string(straggler_verdict_name(w.verdict)),
                   straggler_words(w)});
  }
  return table;
}

std::vector<ColumnSpec> straggler_steps_columns() {
  return {{"step", "step", Type::kInteger, "Step number as the source has it"},
          {"stage", "stage", Type::kInteger, "Pipeline stage"},
          {"busy_ns", "busy", Type::kDuration, "Busy time of a worker of the stage, mean over its workers"},
          {"ratio", "to usual", Type::kRatio, "The same to the stage's median over the steps"},
          {"slowest_rank", "slowest rank", Type::kInteger, "The worker that was busy longest"},
          {"slowest_ratio", "to peers", Type::kRatio, "Its busy time to the median of the others"},
          {"slow", "slow", Type::kInteger, "1: at least 1.05, and beyond four standard errors"}};
}

Table steps_stragglers_table(const Trace& trace, const Stragglers& s) {
  Table table("straggler-steps", "Stages step by step", straggler_steps_columns());
  for (const StragglerStep& row : s.steps) {
    const bool peers = row.slowest_part >= 0;
    table.add_row({int64_t{row.step}, int64_t{row.stage}, whole_ns(row.busy_ns), row.ratio,
                   peers ? int64_t{trace.parts[row.slowest_part].rank} : kNullInteger,
                   peers ? row.slowest_ratio : std::nan(""), int64_t{row.slow}});
  }
  return table;
}

std::vector<ColumnSpec> forward_backward_columns() {
  return {
      {"stage", "stage", Type::kInteger, "Pipeline stage"},
      {"pairs", "pairs", Type::kInteger, "Micro-batches compared, each with the mean of its worker, chunk and step"},
      {"r", "r", Type::kReal, "Correlation of forward and backward (B or I) over them; empty without spread"},
      {"spread", "spread", Type::kShare, "Standard deviation of the forwards as a share of their mean"},
      {"data_dependent", "data-dependent", Type::kInteger,
       "1: r at least 0.9 with a spread of 5 % or more over 8 pairs: cost that lies in the data, such as "
       "sequence length"}};
}

Table correlations_table(const Stragglers& s) {
  Table table("forward-backward", "Do long forwards have long backwards?", forward_backward_columns());
  for (const FbCorrelation& c : s.correlations)
    table.add_row({int64_t{c.stage}, c.pairs, c.r, c.spread, int64_t{c.data_dependent}});
  return table;
}

Result<AnalysisResult> run_stragglers(const AnalysisInput& input) {
  AnalysisResult result;
  const Trace& trace = *input.trace;
  const Run& run = input.run();
  const RunGraph& free = graph_of(run, LaunchRule::kFree);
  result.notes.merge(free.notes);
  if (!free.graph) return *free.error;
  const StepGraph* graph = free.graph.get();
  const TheoryRun& theory = theory_of(run);
  const RunCoverage& coverage = coverage_of(run);
  Stragglers s = stragglers_of(run);  // S_w is added to it
  if (const double worlds = graph->stage_count + graph->dp_count; worlds * graph->size() <= kMaxWork) {
    std::vector<double> s_w(trace.parts.size(), std::nan(""));
    for (const SlowdownWorker& worker : slowdown_of(run).workers) s_w[worker.part] = worker.s;
    for (StragglerWorker& worker : s.workers) worker.s_w = s_w[worker.part];
  } else {
    result.notes.add(problem::stragglers_no_s_w);
  }
  int64_t alone = 0;
  for (const StragglerWorker& worker : s.workers) alone += std::isnan(worker.ratio) ? 1 : 0;
  if (s.workers.empty())
    result.notes.add(problem::stragglers_no_places);
  else if (alone > 0)
    result.notes.add(problem::stragglers_no_peers, {}, alone);
  // Prices are computed on the graph in which a busy rank is no delay; S_w and delays on the graph that `slowdown`
  // uses.
  const RunGraph& launched = graph_of(run, LaunchRule::kInOrder);
  if (!launched.graph) return *launched.error;
  CauseList list = causes_of(run);  // price_in_layers() adds to it
  Diagnostics assumed;
  if (!list.not_analysable && coverage.whole() && has_layers_to_move(list))
    if (Result<WhatIf> model = what_if_of(run, assumed)) price_in_layers(*model, trace, list);
  Table causes = causes_table(trace, s, list, theory.recognition);
  coverage.note("stragglers", result.notes);
  if (causes.row_count() == 0 && !list.not_analysable) result.notes.add(problem::stragglers_none);
  result.tables.push_back(std::move(causes));
  result.tables.push_back(workers_table(trace, s));
  result.tables.push_back(correlations_table(s));
  result.tables.push_back(steps_stragglers_table(trace, s));
  return result;
}

}  // namespace

extern const Analysis stragglers_analysis = {
    .name = "stragglers",
    .summary = "which ranks delay the others, and how: in every step, in some steps, by pauses, by their data",
    .tables = {{"straggler-causes",
                "one row per cause that costs 1 % of a step, by a replay without it: those of explain, and slow steps",
                straggler_causes_columns},
               {"straggler-workers", "one row per rank: busy against its peers, S_w, pauses, verdict",
                straggler_workers_columns},
               {"forward-backward", "per stage: whether long forwards have long backwards", forward_backward_columns},
               {"straggler-steps", "one row per step and stage: busy against the usual step, slowest rank",
                straggler_steps_columns}},
    .run = run_stragglers,
    .across_ranks = true};

}  // namespace stageline
