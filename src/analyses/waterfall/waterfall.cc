// The time of a step as parts that sum to its length. Definitions: docs/analyses/waterfall.md.
#include "pipeline/measure/waterfall.h"

#include "analyses/analysis.h"
#include "analyses/waterfall/problems.h"
#include "base/error_words.h"
#include "facts/pipeline_facts.h"
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

// The columns of the table of steps that have these parts; their help says what a part is.
constexpr std::string_view kPartColumns[kWaterfallParts] = {"compute_ns", "schedule_ns", "imbalance_ns", "jitter_ns",
                                                            "latency_ns", "rest_ns",     "tail_ns"};
constexpr std::string_view kTailColumns[kTailParts] = {"tail_replicas_ns", "tail_collectives_ns", "tail_optimizer_ns",
                                                       "tail_other_ns", "tail_idle_ns"};
const std::string& meaning_of(std::string_view column) {
  return std::ranges::find(declared_table("waterfall/waterfall-steps").columns, column, &ColumnSpec::name)->help;
}

Table means_table(const Waterfall& w, const WaterfallStep& mean, const StepMean& usual, bool with_gaps) {
  Table table(declared_table("waterfall/waterfall"));
  const auto add = [&](std::string_view name, std::string_view within, int64_t ns, double exact, bool pipeline,
                       const std::string& meaning) {
    table.add_row({std::string(name), std::string(within), ns, pipeline ? share_of(exact, mean.pipeline_ns) : kNaN,
                   share_of(exact, mean.span_ns), meaning});
  };
  if (w.steps.empty()) return table;
  RunningSum sum;
  for (size_t k = 0; k < kWaterfallParts; ++k) {
    const auto part = static_cast<WaterfallPart>(k);
    if (part == WaterfallPart::kTail)
      add("pipeline", "", whole_ns(mean.pipeline_ns), mean.pipeline_ns, true,
          "the sum so far: the span of the compute cells");
    add(waterfall_part_name(part), "", sum.next(mean.part_ns[k]), mean.part_ns[k], k < kPipelineParts,
        meaning_of(kPartColumns[k]));
    if (part == WaterfallPart::kSchedule && !std::isnan(mean.order_ns))
      add("from the order", "schedule bubble", whole_ns(mean.order_ns), mean.order_ns, true,
          "of the schedule bubble: extra cost of the recorded order over that of the recognised schedule");
    if (part == WaterfallPart::kLatency)
      add("held by receives", "message latency", whole_ns(mean.held_ns), mean.held_ns, true,
          "of message latency: ranks were blocked in a receive although its message had been ready long before");
    for (size_t t = 0; t < kTailParts && part == WaterfallPart::kTail; ++t)
      if (!std::isnan(mean.tail_ns[t]))
        add(tail_part_name(static_cast<TailPart>(t)), waterfall_part_name(part), whole_ns(mean.tail_ns[t]),
            mean.tail_ns[t], false, meaning_of(kTailColumns[t]));
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

Table periods_table(const Trace& trace, const StepPeriods& periods) {
  Table table(declared_table("waterfall/waterfall-periods"));
  for (size_t i = 0; i < periods.gaps.size(); ++i) {
    const StepGap& gap = periods.gaps[i];
    const double named = sum_over<double>(gap.phases, &GapPhase::ns);
    const GapPhase* first = gap.phases.empty() ? nullptr : &gap.phases.front();
    const bool one = first && first->part != kUnknown;
    table.add_row({int64_t{gap.step}, whole_ns(gap.ns), std::string(periods.is_long(i) ? "yes" : "no"),
                   first ? first->name : std::string(), first ? whole_ns(first->ns) : kNullInteger,
                   one ? int64_t{trace.parts[first->part].rank} : kNullInteger, whole_ns(gap.ns - named)});
  }
  return table;
}

Table steps_waterfall_table(const Trace& trace, const Waterfall& w) {
  Table table(in_words_of(trace, declared_table("waterfall/waterfall-steps")));
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

Table stages_table(const Waterfall& w) {
  Table table(declared_table("waterfall/waterfall-stages"));
  for (const WaterfallStage& stage : w.stages) {
    RunningSum sum;
    std::vector<Table::Value> row = {int64_t{stage.stage}, whole_ns(stage.pipeline_ns)};
    for (const double ns : stage.part_ns) row.emplace_back(sum.next(ns));
    row.emplace_back(share_of(stage.part_ns[0], stage.pipeline_ns));
    table.add_row(std::move(row));
  }
  return table;
}

Table check_table(const Waterfall& w, const WaterfallStep& mean) {
  Table table(declared_table("waterfall/waterfall-check"));
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

Table frontier_table(const Frontier& frontier) {
  Table table(declared_table("waterfall/waterfall-frontier"));
  const double sum = sum_over<double>(frontier.phases, &FrontierSum::exposed_ns);
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
  if (w.clock_free) notes.add(problem::waterfall_clock_free);
  else if (w.latency.by_messages + w.latency.by_gaps > 0)
    notes.add(w.latency.by_gaps == 0       ? problem::waterfall_latency
              : w.latency.by_messages == 0 ? problem::waterfall_latency_gaps
                                           : problem::waterfall_latency_both,
              Args()
                  .set("median", human_duration(w.latency.median_ns))
                  .set("recorded", grouped(w.latency.by_messages))
                  .set("gaps", grouped(w.latency.by_gaps)));
  const int64_t outliers = sum_over<int64_t>(w.steps, &WaterfallStep::outlier);
  notes.add(problem::waterfall_outliers, {}, outliers);
  notes.add(problem::waterfall_unnumbered, {}, w.unnumbered);
  notes.add(problem::waterfall_without_producer, {}, w.without_producer);
  notes.add(problem::waterfall_broken, {}, w.broken);
  if (w.overlap_ns > kOverlapShare * w.busy_ns)
    notes.add(problem::waterfall_overlap, Args().set("share", percent(w.overlap_ns / w.busy_ns)));
}

}  // namespace

Result<AnalysisResult> run_waterfall(const AnalysisInput& input) {
  const Trace& trace = *input.trace;
  const Waterfall& w = waterfall_of(input.run());
  if (!w.known())
    return worded_error(ErrorCode::kBadInput, "refused.no_schedule.waterfall", Args().set("why", w.why_not), {},
                        "stageline analyze pipeline-summary shows busy time and bubbles");
  AnalysisResult result;
  add_notes(w, result.notes);
  coverage_of(input.run()).note("waterfall", result.notes);
  const WaterfallStep mean = mean_of(w);
  const StepPeriods& periods = periods_of(input.run());
  return result.with(means_table(w, mean, step_means_of(input.run()).usual, periods.known()), stages_table(w),
                     check_table(w, mean), frontier_table(frontier_of(trace, sums_of(input.run()).outliers)),
                     steps_waterfall_table(trace, w), periods_table(trace, periods));
}

}  // namespace stageline
