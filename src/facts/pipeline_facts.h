// Facts about the pipeline of a run that several questions need, each made once per Run.
#pragma once

#include "facts/run.h"
#include "pipeline/measure/slowdown.h"
#include "pipeline/measure/step_periods.h"
#include "pipeline/measure/stragglers.h"
#include "pipeline/measure/waterfall.h"

namespace stageline {

// The sums of steps and ranks, and the outlier steps.
const PipelineSums& sums_of(const Run& run);

// The recognised schedule, the ranks' lists, and when cells should have run; empty for a trace without cells.
const TheoryRun& theory_of(const Run& run);
// Returns the same if it has been made already, else nullptr.
const TheoryRun* made_theory_of(const Run& run);

// Returns how much of the whole run was recorded; for runs with numbered steps.
const RunCoverage& coverage_of(const Run& run);

// Where the time of the steps went.
const Waterfall& waterfall_of(const Run& run);

// The recorded run as a graph; `rule` defines the time from which a launch counts as late.
struct RunGraph {
  std::shared_ptr<const StepGraph> graph;  // nullptr when there is none; then `error` gives the reason
  std::optional<Error> error;
  Diagnostics notes;  // the assumptions of the graph
};
const RunGraph& graph_of(const Run& run, LaunchRule rule);

// Returns the cost of stragglers, computed on the graph of LaunchRule::kFree, which must exist (RunGraph::graph).
const Slowdown& slowdown_of(const Run& run);

// The time between steps, as a fact of a run.
const StepPeriods& periods_of(const Run& run);

// Finds which ranks delay the others (pipeline/measure/stragglers), on the graph of LaunchRule::kFree, which must exist
// (RunGraph::graph). S_w is not in it; slowdown_of() has it.
const Stragglers& stragglers_of(const Run& run);

// How many steps a pipeline run has and how long they take: the one place that answers this. Headline, breakdown,
// what-if, tables and figures ask it.
//
//   step 4 ▐▐▐▐▐▐▐ span ▐▐▐▐▐▐▐|···· gap ····|▐▐▐ step 5      period = span + gap, from start to start
//   step 4 ▐▐▐▐▐▐▐ span ▐▐▐▐▐▐▐▐▐                             the gap of steps that overlap is below 0
//                       |▐▐▐▐▐▐▐▐▐▐▐▐ step 5

// Means over a set of steps. The gap is the mean of the gaps between them.
struct StepMean {
  int64_t steps = 0;
  double span_ns = 0;  // first start to the last end of the step's work, also where the next step has begun by then
  double gap_ns = 0;
  double period_ns() const { return span_ns + gap_ns; }
};

struct StepMeans {
  std::vector<double> span_ns;  // for each step of `numbers`
  std::vector<int32_t> numbers;
  StepMean usual;  // without PipelineSums::outliers and without long gaps
  StepMean all;    // PipelineSums::incomplete count where their spans are known
};

// Spans are those of the replayed graph where the run has one, so that prices and step times agree to the nanosecond;
// else those of StepPeriods.
const StepMeans& step_means_of(const Run& run);

}  // namespace stageline
