// Compares theory with fact: the times that the recognised schedule gives with this run's mean durations, the cells
// that start later and why, and the phases of every rank. Definitions: docs/analyses/theory.md.
#include "analyses/analysis.h"
#include "analyses/theory/problems.h"
#include "base/error_words.h"
#include "facts/pipeline_facts.h"
#include "model/pipeline_words.h"
#include "model/statistics.h"
#include "pipeline/measure/late_cells.h"

namespace stageline {
namespace {

constexpr double kMinShare = 0.01;  // share of the theory's span below which a cell is not listed

// Returns the bubbles of every rank, both of the replay and as measured.
Table ranks_theory_table(const Trace& trace, const TheoryRun& run, const PipelineSums& sums) {
  Table table(in_words_of(trace, declared_table("theory/theory-ranks")));
  size_t r = 0, s = 0;
  const Theory& theory = run.theory;
  // Lists are ordered by step, replica, part; sums by step, part. So both are walked step by step.
  for (size_t first = 0; first < run.lists.lists.size();) {
    size_t last = first;
    const int32_t step = run.lists.lists[first].step;
    while (last < run.lists.lists.size() && run.lists.lists[last].step == step) ++last;
    while (r < sums.ranks.size() && sums.ranks[r].step < step) ++r;
    const size_t ranks_begin = r;
    while (r < sums.ranks.size() && sums.ranks[r].step == step) ++r;
    for (size_t l = first; l < last; ++l) {
      const RankList& list = run.lists.lists[l];
      const TheorySize* size = run.size(l);
      while (s < theory.steps.size() &&
             std::pair(theory.steps[s].step, theory.steps[s].dp) < std::pair(list.step, list.dp))
        ++s;
      const auto at = std::lower_bound(sums.ranks.begin() + ranks_begin, sums.ranks.begin() + r, list.part,
                                       [](const RankSums& sum, int32_t part) { return sum.part < part; });
      const bool placed = s < theory.steps.size() && theory.steps[s].step == list.step && theory.steps[s].dp == list.dp;
      if (!size || !placed || at == sums.ranks.begin() + r || at->part != list.part) continue;
      const TheoryStep& whole = theory.steps[s];
      const ScheduleNumbers& numbers = run.numbers(s, *size);
      const RankNumbers& own = numbers.ranks[list.stage];
      const int64_t span = whole.actual_end_ns - whole.actual_start_ns;
      int64_t theory_end = kNoTheory;
      for (size_t t = list.begin; t < list.end; ++t)
        if (theory.has(run.lists.cell[t])) theory_end = std::max(theory_end, theory.end_ns[run.lists.cell[t]]);
      table.add_row({int64_t{list.step}, known_integer(list.dp), int64_t{list.stage},
                     int64_t{trace.parts[list.part].rank}, numbers.span_ns, theory.by_rank ? kNullInteger : span,
                     own.span_bubble_ns, theory.by_rank ? kNullInteger : span - at->busy_ns, own.inner_bubble_ns,
                     at->inner_bubble_ns, own.busy_ns, at->busy_ns,
                     theory_end == kNoTheory ? kNullInteger : trace.common_ns(list.part, at->last_ns) - theory_end,
                     int64_t{whole.own_pace}});
    }
    first = last;
  }
  return table;
}

Table phases_table(const Trace& trace) {
  Table table(in_words_of(trace, declared_table("theory/phases")));
  const auto add = [&](int32_t step, int32_t dp, int32_t stage, int64_t rank, const auto& p) {
    table.add_row(
        {int64_t{step}, known_integer(dp), known_integer(stage), rank, p.start_ns, p.steady_ns - p.start_ns,
         p.cool_down_ns - p.steady_ns, p.end_ns - p.cool_down_ns,
         share_of(static_cast<double>(p.cool_down_ns - p.steady_ns), static_cast<double>(p.end_ns - p.start_ns))});
  };
  const std::vector<RankPhases> ranks = rank_phases(trace);
  std::vector<PipelinePhases> pipelines;
  if (trace.comparable()) pipelines = pipeline_phases(trace, ranks);
  size_t next = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (; (i == 0 || ranks[i].step != ranks[i - 1].step) && next < pipelines.size() &&
           pipelines[next].step <= ranks[i].step;
         ++next)
      add(pipelines[next].step, pipelines[next].dp, kUnknown, kNullInteger, pipelines[next]);
    const Part& part = trace.parts[ranks[i].part];
    add(ranks[i].step, part.dp, part.stage, part.rank, ranks[i]);
  }
  return table;
}

Table late_table(const Trace& trace, const TheoryRun& run, const LateCells& late) {
  Table table(in_words_of(trace, declared_table("theory/late-cells")));
  const bool with_chunk = run.lists.chunks > 1;
  for (const LateCell& l : late.cells) {
    const Cell cell = trace.common_cell(l.cell);
    const Part& part = trace.parts[cell.part];
    const bool waited = l.waited_for != UINT32_MAX;
    const Cell other = waited ? trace.common_cell(l.waited_for) : Cell{};
    table.add_row({int64_t{cell.step}, known_integer(part.dp), known_integer(part.stage), int64_t{part.rank},
                   cell_label(cell, with_chunk), run.theory.start_ns[l.cell], cell.start_ns, l.late_ns,
                   std::string(late_reason_name(l.reason)), waited ? cell_label(other, with_chunk) : std::string(),
                   waited ? int64_t{trace.parts[other.part].rank} : kNullInteger, l.gap_ns, l.message_ns, l.launch_ns,
                   l.blocked_ns});
  }
  return table;
}

Table reasons_table(const LateCells& late) {
  Table table(declared_table("theory/late-reasons"));
  for (size_t s = 0; s < late.by_stage.size(); ++s)
    for (size_t r = 0; r < kLateReasons; ++r) {
      const LateSum& sum = late.by_stage[s][r];
      if (sum.count == 0) continue;
      table.add_row({static_cast<int64_t>(s), std::string(late_reason_name(static_cast<LateReason>(r))), sum.count,
                     std::llround(sum.late_ns / sum.count), sum.max_ns, std::llround(sum.gap_ns)});
    }
  return table;
}

Table chain_table(const LateChain& c) {
  Table table(declared_table("theory/theory-loss"));
  if (c.steps == 0) return table;
  const auto add = [&](const char* name, double ns) {
    table.add_row({std::string(name), std::llround(ns / c.steps), share_of(ns, c.actual_ns)});
  };
  add("theory", c.theory_ns);
  add("longer cells", c.longer_ns);
  add("messages", c.message_ns);
  add("launches", c.launch_ns);
  add("blocked in messages", c.blocked_ns);
  add("unexplained gaps", c.unexplained_ns);
  add("slack", 0 - c.slack_ns);
  add("span", c.actual_ns);
  return table;
}

}  // namespace

Result<AnalysisResult> run_theory(const AnalysisInput& input) {
  const Trace& trace = *input.trace;
  const TheoryRun& theory = theory_of(input.run());
  AnalysisResult result;
  if (!theory.theory.known()) {
    const Args why = Args().set("why", theory.theory.why_not);
    if (rank_phases(trace).empty())
      return worded_error(ErrorCode::kBadInput, "refused.no_schedule.theory", why, {},
                          "stageline analyze schedule shows what was compared");
    result.notes.add(problem::theory_none, why);
  }
  if (theory.theory.by_rank) result.notes.add(problem::theory_by_rank);
  result.notes.add(problem::theory_without, {}, theory.theory.without);
  if (!theory.theory.outliers.empty()) result.notes.add(problem::theory_outliers, {}, theory.theory.outliers.size());
  double span_ns = 0;
  for (const TheorySize& size : theory.sizes) span_ns = std::max<double>(span_ns, size.numbers.span_ns);
  TRY(min, input.options.duration_ns("least", std::max<int64_t>(1, std::llround(span_ns * kMinShare))));
  const LateCells late = late_cells(trace, theory, *min);
  if (late.found > std::ssize(late.cells))
    result.notes.add(problem::theory_max_late, {}, late.found - std::ssize(late.cells));
  return result.with(chain_table(late.chain), ranks_theory_table(trace, theory, sums_of(input.run())),
                     phases_table(trace), reasons_table(late), late_table(trace, theory, late));
}

}  // namespace stageline
