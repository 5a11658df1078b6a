// What the pipeline of a run is and adds up to: the facts that several questions stand on, each made once per Run.
#pragma once

#include <memory>
#include <optional>

#include "base/diagnostics.h"
#include "base/result.h"
#include "facts/run.h"
#include "model/pipeline_sums.h"
#include "pipeline/measure/run_coverage.h"
#include "pipeline/measure/slowdown.h"
#include "pipeline/measure/waterfall.h"
#include "pipeline/replay/step_graph.h"
#include "pipeline/replay/theory.h"

namespace stageline {

// Sums of steps and ranks, and the steps that are no measure for the others.
const PipelineSums& sums_of(const Run& run);

// The recognised schedule, its lists, and what ranks should have done; of a trace without cells nothing.
const TheoryRun& theory_of(const Run& run);

// What of a whole run on numbered steps was recorded.
const RunCoverage& coverage_of(const Run& run);

// Where the steps' time went.
const Waterfall& waterfall_of(const Run& run);

// What ran as a graph, whose launches follow `rule`.
struct RunGraph {
  std::shared_ptr<const StepGraph> graph;  // nullptr: there is none, and `error` says why
  std::optional<Error> error;
  Diagnostics notes;  // what it assumes
};
const RunGraph& graph_of(const Run& run, LaunchRule rule);

// What stragglers cost, on the graph of LaunchRule::kFree, which must have been made (RunGraph::graph).
const Slowdown& slowdown_of(const Run& run);

}  // namespace stageline
