// Facts about the pipeline of a run that several questions need, each made once per Run.
#pragma once

#include <memory>
#include <optional>

#include "base/diagnostics.h"
#include "base/result.h"
#include "facts/run.h"
#include "pipeline/measure/run_coverage.h"
#include "pipeline/measure/slowdown.h"
#include "pipeline/measure/waterfall.h"
#include "pipeline/replay/theory.h"
#include "pipeline/sums/pipeline_sums.h"

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

}  // namespace stageline
