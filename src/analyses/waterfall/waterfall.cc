// The time of a step as parts that sum to its length. Definitions: docs/analyses/waterfall.md.
#include "pipeline/measure/waterfall.h"

#include <algorithm>
#include <cmath>

#include "analyses/analysis.h"
#include "analyses/waterfall/problems.h"
#include "base/error_words.h"
#include "base/number.h"
#include "facts/period_facts.h"
#include "facts/pipeline_facts.h"
#include "facts/step_means.h"
#include "model/pipeline_words.h"
#include "model/statistics.h"
#include "pipeline/measure/frontier.h"
#include "pipeline/measure/run_coverage.h"

namespace stageline {
namespace {

// Rounds durations so that they sum to the rounded sum: each is the difference of two rounded running sums.
class RunningSum {
 public:
  int64_t next(double ns) {
    const int64_t before = whole_ns(sum_);
    sum_ += ns;
    return whole_ns(sum_) - before;
  }

 private:
  double sum_ = 0;
};

constexpr const char* kMeaning[kWaterfallParts] = {
    "mean over the pipeline's ranks of the time in which they run F, B, I or W",
    "cost of the order if all cells of a kind took the same time and messages took none",
    "added by different means of stages and chunks; below 0: the slow ones are where no rank waits for them",
    "added by cells that differ from the mean of their stage; below 0: the long ones fell where there was time",
    "added by the time that messages between ranks take",
    "late starts of work: launches, host work, other streams; below 0: cells started before their inputs were ready",
    "before the first and after the last cell of the replica's pipeline: collectives, optimizer, waiting"};
constexpr const char* kTailMeaning[kTailParts] = {
    "before or after: until the last replica's pipeline has ended",
    "before or after: some rank gathers parameters or exchanges gradients, or waits in it",
    "before or after: some rank runs the optimizer, or waits in it, and none is in a collective",
    "before or after: other recorded work", "before or after: nothing was recorded"};

std::vector<ColumnSpec> waterfall_columns() {
  return {{"part", "part", Type::kText,
           "compute to late starts add up to the pipeline, with what is before and after it to the step"},
          {"within", "within", Type::kText, "The row that it is a piece of; empty: it is one of the sum"},
          {"mean_ns", "time", Type::kDuration, "Mean over steps and replicas, without outlier steps"},
          {"pipeline_share", "of the pipeline", Type::kShare, "As a share of the span of the replica's compute cells"},
          {"step_share", "of the step", Type::kShare, "As a share of the step's span"},
          {"meaning", "what it is", Type::kText, "What the part says"}};
}

Table means_table(const Waterfall& w, const WaterfallStep& mean, const StepMean& usual, bool with_gaps) {
  Table table("waterfall", "Where the time of a step goes, mean over steps and replicas", waterfall_columns());
  const auto add = [&](std::string_view name, std::string_view within, int64_t ns, double exact, bool pipeline,
                       const char* meaning) {
    table.add_row({std::string(name), std::string(within), ns, pipeline ? share_of(exact, mean.pipeline_ns) : kNaN,
                   share_of(exact, mean.span_ns), std::string(meaning)});
  };
  if (w.steps.empty()) return table;
  RunningSum sum;
  for (size_t k = 0; k < kWaterfallParts; ++k) {
    const auto part = static_cast<WaterfallPart>(k);
    if (part == WaterfallPart::kTail)
      add("pipeline", "", whole_ns(mean.pipeline_ns), mean.pipeline_ns, true,
          "the sum so far: the span of the compute cells");
    add(waterfall_part_name(part), "", sum.next(mean.part_ns[k]), mean.part_ns[k], k < kPipelineParts, kMeaning[k]);
    if (part == WaterfallPart::kSchedule && !std::isnan(mean.order_ns))
      add("from the order", "schedule bubble", whole_ns(mean.order_ns), mean.order_ns, true,
          "of the schedule bubble: extra cost of the recorded order over that of the recognised schedule");
    if (part == WaterfallPart::kLatency)
      add("held by receives", "message latency", whole_ns(mean.held_ns), mean.held_ns, true,
          "of message latency: ranks were blocked in a receive although its message had been ready long before");
    for (size_t t = 0; t < kTailParts && part == WaterfallPart::kTail; ++t)
      if (!std::isnan(mean.tail_ns[t]))
        add(tail_part_name(static_cast<TailPart>(t)), waterfall_part_name(part), whole_ns(mean.tail_ns[t]),
            mean.tail_ns[t], false, kTailMeaning[t]);
  }
  add("step", "", whole_ns(mean.span_ns), mean.span_ns, false, "the sum of all: the span of the step");
  if (!with_gaps) return table;
  const double period_ns = usual.period_ns();
  add("between steps", "", whole_ns(period_ns - mean.span_ns), period_ns - mean.span_ns, false,
      "from the last end of a step's work to the first start of the next one's, without gaps that are far longer");
  add("period", "", whole_ns(period_ns), period_ns, false,
      "the step and what follows it: from its start to the start of the next one");
  return table;
}

std::vector<ColumnSpec> waterfall_periods_columns() {
  return {
      {"step", "before step", Type::kInteger, "The step that it comes before, right after the one numbered one lower"},
      {"gap_ns", "gap", Type::kDuration,
       "Last end of work (compute, collectives, optimizer) to its first start; below 0 where the steps overlap"},
      {"long", "long", Type::kText, "yes: beyond the median gap by over 0.3 × the median step"},
      {"phase", "longest in it", Type::kText, "Name of the rows of kind other that cover most of it; empty: none"},
      {"phase_ns", "of that", Type::kDuration, "What they cover of it"},
      {"rank", "rank", Type::kInteger, "The one rank that has such rows there; empty: several"},
      {"unnamed_ns", "unnamed", Type::kDuration, "What no row covers"}};
}

Table periods_table(const Trace& trace, const StepPeriods& periods) {
  Table table("waterfall-periods", "The time between steps", waterfall_periods_columns());
  for (size_t i = 0; i < periods.gaps.size(); ++i) {
    const StepGap& gap = periods.gaps[i];
    double named = 0;
    for (const GapPhase& phase : gap.phases) named += phase.ns;
    const GapPhase* first = gap.phases.empty() ? nullptr : &gap.phases.front();
    const bool one = first && first->part != kUnknown;
    table.add_row({int64_t{gap.step}, whole_ns(gap.ns), std::string(periods.is_long(i) ? "yes" : "no"),
                   first ? first->name : std::string(), first ? whole_ns(first->ns) : kNullInteger,
                   one ? int64_t{trace.parts[first->part].rank} : kNullInteger, whole_ns(gap.ns - named)});
  }
  return table;
}

std::vector<ColumnSpec> waterfall_steps_columns() {
  return {
      {"step", "step", Type::kInteger, "Step number as the source has it"},
      kPipelineColumn,
      {"span_ns", "step", Type::kDuration, "Span of the step over all replicas"},
      {"pipeline_ns", "pipeline", Type::kDuration, "First start to last end of the replica's compute cells"},
      {"compute_ns", "compute", Type::kDuration, kMeaning[0]},
      {"schedule_ns", "schedule bubble", Type::kDuration, kMeaning[1]},
      {"order_ns", "from the order", Type::kDuration,
       "Of the schedule bubble: what the order that ran costs more than that of the recognised schedule; empty where "
       "that cannot be told"},
      {"imbalance_ns", "stage imbalance", Type::kDuration, kMeaning[2]},
      {"jitter_ns", "jitter", Type::kDuration, kMeaning[3]},
      {"latency_ns", "message latency", Type::kDuration, kMeaning[4]},
      {"held_ns", "held by receives", Type::kDuration,
       "Of message latency: ranks sat in a receive though what it waits for was done long before"},
      {"rest_ns", "late starts", Type::kDuration, kMeaning[5]},
      {"tail_ns", "before and after", Type::kDuration, kMeaning[6]},
      {"tail_replicas_ns", "replicas", Type::kDuration, kTailMeaning[0]},
      {"tail_collectives_ns", "collectives", Type::kDuration, kTailMeaning[1]},
      {"tail_optimizer_ns", "optimizer", Type::kDuration, kTailMeaning[2]},
      {"tail_other_ns", "other", Type::kDuration, kTailMeaning[3]},
      {"tail_idle_ns", "idle", Type::kDuration, kTailMeaning[4]},
      {"outlier", "outlier", Type::kInteger,
       "1: the step takes over 1.3× the median step and is no part of the means"}};
}

Table steps_waterfall_table(const Trace& trace, const Waterfall& w) {
  Table table("waterfall-steps", "Where the time went, by step and replica",
              in_words_of(trace, waterfall_steps_columns()));
  for (const WaterfallStep& step : w.steps) {
    RunningSum sum;
    std::vector<Table::Value> row = {int64_t{step.step}, known_integer(step.dp), whole_ns(step.span_ns),
                                     whole_ns(step.pipeline_ns)};
    for (size_t k = 0; k < kWaterfallParts; ++k) {
      row.emplace_back(sum.next(step.part_ns[k]));
      if (static_cast<WaterfallPart>(k) == WaterfallPart::kSchedule) row.emplace_back(whole_ns(step.order_ns));
      if (static_cast<WaterfallPart>(k) == WaterfallPart::kLatency) row.emplace_back(whole_ns(step.held_ns));
    }
    for (const double ns : step.tail_ns) row.emplace_back(whole_ns(ns));
    row.emplace_back(int64_t{step.outlier});
    table.add_row(std::move(row));
  }
  return table;
}

std::vector<ColumnSpec> waterfall_stages_columns() {
  return {{"stage", "stage", Type::kInteger, "Pipeline stage"},
          {"pipeline_ns", "pipeline", Type::kDuration, "Span of the pipeline: the sum of what follows"},
          {"busy_ns", "busy", Type::kDuration, "Time in which a rank of the stage runs F, B, I or W"},
          {"schedule_ns", "schedule bubble", Type::kDuration,
           "It would wait so long if every cell of a kind took the same time"},
          {"imbalance_ns", "stage imbalance", Type::kDuration,
           "It waits so much longer because stages differ in their means; below 0: it is the one the others wait for"},
          {"jitter_ns", "jitter", Type::kDuration, "The same, because cells differ from their stage's means"},
          {"latency_ns", "message latency", Type::kDuration, "The same, because messages take time"},
          {"rest_ns", "late starts", Type::kDuration, "Waiting although order, inputs and usual latencies allowed a start"},
          {"busy_share", "busy", Type::kShare, "Busy as a share of the pipeline's span"}};
}

Table stages_table(const Waterfall& w) {
  Table table("waterfall-stages", "What each stage waits for, mean over steps and ranks", waterfall_stages_columns());
  for (const WaterfallStage& stage : w.stages) {
    RunningSum sum;
    std::vector<Table::Value> row = {int64_t{stage.stage}, whole_ns(stage.pipeline_ns)};
    for (const double ns : stage.part_ns) row.emplace_back(sum.next(ns));
    row.emplace_back(share_of(stage.part_ns[0], stage.pipeline_ns));
    table.add_row(std::move(row));
  }
  return table;
}

std::vector<ColumnSpec> waterfall_check_columns() {
  return {{"what", "what", Type::kText, "The number that both ways have"},
          {"replayed_ns", "waterfall", Type::kDuration, "As the waterfall has it"},
          {"clock_free_ns", "clock-free", Type::kDuration, "The longest that one rank has on its own clock"},
          {"difference_ns", "difference", Type::kDuration, "Waterfall minus clock-free"},
          {"agrees", "they agree", Type::kText, "When the two are the same"}};
}

Table check_table(const Waterfall& w, const WaterfallStep& mean) {
  Table table("waterfall-check", "The same without comparing clocks, mean over steps and replicas",
              waterfall_check_columns());
  if (w.steps.empty()) return table;
  const auto add = [&](const char* what, double replayed, double own, const char* agrees) {
    table.add_row({std::string(what), whole_ns(replayed), whole_ns(own), whole_ns(replayed) - whole_ns(own),
                   std::string(agrees)});
  };
  const char* same = w.clock_free ? "ranks share no clock: the waterfall takes the clock-free one" : nullptr;
  add("pipeline", mean.pipeline_ns, mean.own_pipeline_ns,
      same ? same : "where one rank has the pipeline's first cell and its last one, as rank 0 of 1F1B has; else more");
  add("step", mean.span_ns, mean.own_span_ns,
      same ? same : "where one rank is at work from the step's start to its end; else more");
  const auto part = [&](WaterfallPart p) { return mean.part_ns[p]; };
  add("compute and imbalance", part(WaterfallPart::kCompute) + part(WaterfallPart::kImbalance), mean.busiest_ns,
      "if the busiest rank is longer than the mean by up to one micro-batch");
  return table;
}

std::vector<ColumnSpec> waterfall_frontier_columns() {
  return {{"phase", "phase", Type::kText,
           "before: until a rank's first compute cell; warm-up, steady, cool-down as in theory; after: until its "
           "last cell"},
          {"exposed_ns", "exposed", Type::kDuration,
           "What the longest of the ranks' own times grows by in the phase, mean over steps and replicas; adds up"},
          {"share", "of the sum", Type::kShare, "As a share of the sum"},
          {"stage", "stage", Type::kInteger, "The stage whose rank has come furthest in time most often"},
          {"stage_share", "in", Type::kShare, "Share of the steps and replicas in which it is that stage"}};
}

Table frontier_table(const Frontier& frontier) {
  Table table("waterfall-frontier", "Frontier of the ranks' own times, phase by phase", waterfall_frontier_columns());
  double sum = 0;
  for (const FrontierSum& phase : frontier.phases) sum += phase.exposed_ns;
  RunningSum running;
  for (size_t k = 0; k < kFrontierPhases && frontier.pipelines > 0; ++k) {
    const FrontierSum& phase = frontier.phases[k];
    table.add_row({std::string(frontier_phase_name(static_cast<FrontierPhase>(k))), running.next(phase.exposed_ns),
                   share_of(phase.exposed_ns, sum), known_integer(phase.stage), phase.stage_share});
  }
  return table;
}

void add_notes(const Waterfall& w, Diagnostics& notes) {
  constexpr double kOverlapShare = 0.001;
  if (w.clock_free)
    notes.add(problem::waterfall_clock_free);
  else if (w.latency.by_messages + w.latency.by_gaps > 0)
    notes.add(w.latency.by_gaps == 0       ? problem::waterfall_latency
              : w.latency.by_messages == 0 ? problem::waterfall_latency_gaps
                                           : problem::waterfall_latency_both,
              Args()
                  .set("median", human_duration(w.latency.median_ns))
                  .set("recorded", grouped(w.latency.by_messages))
                  .set("gaps", grouped(w.latency.by_gaps)));
  int64_t outliers = 0;
  for (const WaterfallStep& step : w.steps) outliers += step.outlier;
  if (outliers > 0) notes.add(problem::waterfall_outliers, {}, outliers);
  if (w.unnumbered > 0) notes.add(problem::waterfall_unnumbered, {}, w.unnumbered);
  if (w.without_producer > 0) notes.add(problem::waterfall_without_producer, {}, w.without_producer);
  if (w.broken > 0) notes.add(problem::waterfall_broken, {}, w.broken);
  if (w.overlap_ns > kOverlapShare * w.busy_ns)
    notes.add(problem::waterfall_overlap, Args().set("share", percent(w.overlap_ns / w.busy_ns)));
}

Result<AnalysisResult> run_waterfall(const AnalysisInput& input) {
  const Trace& trace = *input.trace;
  const Waterfall& w = waterfall_of(input.run());
  if (!w.known())
    return said_error(ErrorCode::kBadInput, "refused.no_schedule.waterfall", Args().set("why", w.why_not), {},
                      "stageline analyze pipeline-summary shows busy time and bubbles");
  AnalysisResult result;
  add_notes(w, result.notes);
  coverage_of(input.run()).note("waterfall", result.notes);
  const WaterfallStep mean = mean_of(w);
  const StepPeriods& periods = periods_of(input.run());
  result.tables.push_back(means_table(w, mean, step_means_of(input.run()).usual, periods.known()));
  result.tables.push_back(stages_table(w));
  result.tables.push_back(check_table(w, mean));
  result.tables.push_back(frontier_table(frontier_of(trace, sums_of(input.run()).outliers)));
  result.tables.push_back(steps_waterfall_table(trace, w));
  result.tables.push_back(periods_table(trace, periods));
  return result;
}

}  // namespace

extern const Analysis waterfall_analysis = {
    .name = "waterfall",
    .summary =
        "where the time of a step went: compute, schedule, imbalance, jitter, messages, tail and rest; adds up to the "
        "span",
    .tables =
        {{"waterfall", "one row per part, mean over steps and replicas: time and shares; adds up", waterfall_columns},
         {"waterfall-stages", "one row per stage: busy, and what it waited for by cause", waterfall_stages_columns},
         {"waterfall-check", "spans and the busiest rank, with and without comparing clocks", waterfall_check_columns},
         {"waterfall-frontier", "one row per phase: what is exposed of it on the ranks' own clocks, and by which stage",
          waterfall_frontier_columns},
         {"waterfall-steps", "one row per step and replica", waterfall_steps_columns},
         {"waterfall-periods", "one row per gap between steps: how long, and what was recorded in it",
          waterfall_periods_columns}},
    .run = run_waterfall,
    .across_ranks = true};

}  // namespace stageline
