// Finds the ranks, stages and links that delay the others, with evidence. Definitions: docs/analyses/stragglers.md.
#include "pipeline/measure/stragglers.h"

#include "analyses/analysis.h"
#include "analyses/stragglers/problems.h"
#include "diagnosis/causes/findings.h"
#include "diagnosis/what_if/layer_price.h"
#include "facts/pipeline_facts.h"
#include "model/pipeline_words.h"
#include "pipeline/measure/slowdown.h"

namespace stageline {
namespace {

// S_w needs a replay for every replica and stage. When operations times replays exceed this limit, it is left out here;
// the analysis `slowdown` computes it.
constexpr double kMaxWork = 4e9;

struct CauseRow {
  double price_ns;
  std::vector<Table::Value> cells;
};

// Lists the causes that `explain` names, with its numbers, and the steps that are slow as a whole.
Table causes_table(const Trace& trace, const Stragglers& s, const CauseList& list, const Recognition& recognition) {
  Table table(declared_table("stragglers/straggler-causes"));
  const auto share = [&](double ns) { return list.step_ns > 0 ? ns / list.step_ns : std::nan(""); };
  std::vector<CauseRow> rows;
  for (const Cause& c : list.causes) {
    if (c.together.role == Together::Role::kPartOf) continue;
    const CauseFigures& f = c.figures;
    const double saving_ns = c.price.best_ns();
    rows.push_back(
        {saving_ns,
         {std::string(c.kind->name), known_integer(f.rank), known_integer(f.stage), kNullInteger,
          f.ratio > 0 ? f.ratio : std::nan(""), f.count > 0 ? f.count : kNullInteger, f.of > 0 ? f.of : kNullInteger,
          f.each_ns > 0 ? whole_ns(f.each_ns) : kNullInteger, whole_ns(c.price.lost_ns), share(c.price.lost_ns),
          whole_ns(c.price.half_interval_ns(c.price.lost_ns, c.price.lost_error_ns, list.steps)), whole_ns(saving_ns),
          share(saving_ns), cause_finding(trace, list, c, recognition).title}});
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
  sort_stably(rows, std::greater(), &CauseRow::price_ns);
  for (CauseRow& row : rows) table.add_row(std::move(row.cells));
  return table;
}

Table workers_table(const Trace& trace, const Stragglers& s) {
  Table table(in_words_of(trace, declared_table("stragglers/straggler-workers")));
  for (const StragglerWorker& w : s.workers) {
    const Part& part = trace.parts[w.part];
    table.add_row({int64_t{part.rank}, known_integer(part.dp), known_integer(part.stage), w.steps, whole_ns(w.busy_ns),
                   w.busy_ratio, w.ratio, w.error, w.s_w, w.slow_steps, whole_ns(w.late_ns), w.pauses,
                   whole_ns(w.pause_ns), whole_ns(w.period_ns), std::string(straggler_verdict_name(w.verdict)),
                   straggler_words(w)});
  }
  return table;
}

Table steps_stragglers_table(const Trace& trace, const Stragglers& s) {
  Table table(declared_table("stragglers/straggler-steps"));
  for (const StragglerStep& row : s.steps) {
    const bool peers = row.slowest_part >= 0;
    table.add_row({int64_t{row.step}, int64_t{row.stage}, whole_ns(row.busy_ns), row.ratio,
                   peers ? int64_t{trace.parts[row.slowest_part].rank} : kNullInteger,
                   peers ? row.slowest_ratio : std::nan(""), int64_t{row.slow}});
  }
  return table;
}

Table correlations_table(const Stragglers& s) {
  Table table(declared_table("stragglers/forward-backward"));
  for (const FbCorrelation& c : s.correlations)
    table.add_row({int64_t{c.stage}, c.pairs, c.r, c.spread, int64_t{c.data_dependent}});
  return table;
}

}  // namespace

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
  if (s.workers.empty()) result.notes.add(problem::stragglers_no_places);
  else if (alone > 0) result.notes.add(problem::stragglers_no_peers, {}, alone);
  // Prices are computed on the graph in which a busy rank does not count as a delay; S_w and delays on the graph that
  // `slowdown` uses.
  const RunGraph& launched = graph_of(run, LaunchRule::kInOrder);
  if (!launched.graph) return *launched.error;
  const CauseList list = causes_in_layers(run);
  Table causes = causes_table(trace, s, list, theory.recognition);
  coverage.note("stragglers", result.notes);
  if (causes.row_count() == 0 && !list.not_analysable) result.notes.add(problem::stragglers_none);
  return result.with(std::move(causes), workers_table(trace, s), correlations_table(s),
                     steps_stragglers_table(trace, s));
}

}  // namespace stageline
