#include "facts/pipeline_facts.h"

#include <utility>

namespace stageline {
namespace {

struct SumsFact {
  using Value = PipelineSums;
  static Value make(const Run& run) { return pipeline_sums(run.trace()); }
};

struct TheoryFact {
  using Value = TheoryRun;
  static Value make(const Run& run) {
    return run.trace().cells.size() > 0 ? theory_of(run.trace(), sums_of(run)) : TheoryRun{};
  }
};

struct CoverageFact {
  using Value = RunCoverage;
  static Value make(const Run& run) { return RunCoverage(run.trace(), theory_of(run), sums_of(run).incomplete); }
};

struct WaterfallFact {
  using Value = Waterfall;
  static Value make(const Run& run) { return waterfall_of(run.trace(), theory_of(run), sums_of(run)); }
};

template <LaunchRule kRule>
struct GraphFact {
  using Value = RunGraph;
  static Value make(const Run& run) {
    RunGraph made;
    Result<StepGraph> graph = build_step_graph(run.trace(), sums_of(run), made.notes, kRule);
    if (graph)
      made.graph = std::make_shared<const StepGraph>(std::move(*graph));
    else
      made.error = std::move(graph).error();
    return made;
  }
};

struct SlowdownFact {
  using Value = Slowdown;
  static Value make(const Run& run) { return slowdown(run.trace(), *graph_of(run, LaunchRule::kFree).graph); }
};

// Graphs of compute cells alone know no launches, so such a graph is the same under either rule and is not made twice.
template <LaunchRule kRule, LaunchRule kOther>
const RunGraph& graph_by(const Run& run) {
  if (const RunGraph* other = run.made<GraphFact<kOther>>();
      other && other->graph && other->graph->source == GraphSource::kComputeCells)
    return *other;
  return run.fact<GraphFact<kRule>>();
}

}  // namespace

const PipelineSums& sums_of(const Run& run) { return run.fact<SumsFact>(); }
const TheoryRun& theory_of(const Run& run) { return run.fact<TheoryFact>(); }
const TheoryRun* made_theory_of(const Run& run) { return run.made<TheoryFact>(); }
const RunCoverage& coverage_of(const Run& run) { return run.fact<CoverageFact>(); }
const Waterfall& waterfall_of(const Run& run) { return run.fact<WaterfallFact>(); }

const RunGraph& graph_of(const Run& run, LaunchRule rule) {
  return rule == LaunchRule::kFree ? graph_by<LaunchRule::kFree, LaunchRule::kInOrder>(run)
                                   : graph_by<LaunchRule::kInOrder, LaunchRule::kFree>(run);
}

const Slowdown& slowdown_of(const Run& run) { return run.fact<SlowdownFact>(); }

}  // namespace stageline
