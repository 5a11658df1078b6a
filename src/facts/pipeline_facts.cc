#include "facts/pipeline_facts.h"

#include "model/statistics.h"

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

template <LaunchRule kRule> struct GraphFact {
  using Value = RunGraph;
  static Value make(const Run& run) {
    RunGraph made;
    Result<StepGraph> graph = build_step_graph(run.trace(), sums_of(run), made.notes, kRule);
    if (graph) made.graph = std::make_shared<const StepGraph>(std::move(*graph));
    else made.error = std::move(graph).error();
    return made;
  }
};

struct SlowdownFact {
  using Value = Slowdown;
  static Value make(const Run& run) { return slowdown(run.trace(), *graph_of(run, LaunchRule::kFree).graph); }
};

// Graphs of compute cells alone know no launches, so such a graph is the same under either rule and is not made twice.
template <LaunchRule kRule, LaunchRule kOther> const RunGraph& graph_by(const Run& run) {
  if (const RunGraph* other = run.made<GraphFact<kOther>>();
      other && other->graph && other->graph->source == GraphSource::kComputeCells)
    return *other;
  return run.fact<GraphFact<kRule>>();
}

struct PeriodsFact {
  using Value = StepPeriods;
  static Value make(const Run& run) { return step_periods(run.trace(), sums_of(run)); }
};

struct StragglersFact {
  using Value = Stragglers;
  static Value make(const Run& run) {
    return find_stragglers(run.trace(), *graph_of(run, LaunchRule::kFree).graph, coverage_of(run), sums_of(run));
  }
};

struct StepMeansFact {
  using Value = StepMeans;
  static Value make(const Run& run) {
    StepMeans out;
    const PipelineSums& sums = sums_of(run);
    const StepPeriods& periods = periods_of(run);
    if (const RunGraph& made = graph_of(run, LaunchRule::kInOrder); made.graph)
      for (const GraphStep& step : made.graph->steps)
        out.numbers.push_back(step.step), out.span_ns.push_back(step.span_ns);
    else
      for (const StepSpan& span : periods.spans) out.numbers.push_back(span.step), out.span_ns.push_back(span.ns);
    std::vector<double> usual, known;
    for (size_t s = 0; s < out.numbers.size(); ++s) {
      const auto span = std::ranges::lower_bound(periods.spans, out.numbers[s], {}, &StepSpan::step);
      const bool any = span != periods.spans.end() && span->step == out.numbers[s];
      const bool incomplete = sums.is_incomplete(out.numbers[s]);
      if (incomplete && any) out.span_ns[s] = span->ns;
      if (!incomplete || any) known.push_back(out.span_ns[s]);
      if (!sums.is_outlier(out.numbers[s])) usual.push_back(out.span_ns[s]);
    }
    out.usual = {std::ssize(usual), mean_of(usual), periods.usual_ns};
    out.all = {std::ssize(known), mean_of(known), periods.mean_ns};
    return out;
  }
};

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

const StepPeriods& periods_of(const Run& run) { return run.fact<PeriodsFact>(); }

const Stragglers& stragglers_of(const Run& run) { return run.fact<StragglersFact>(); }

const StepMeans& step_means_of(const Run& run) { return run.fact<StepMeansFact>(); }

}  // namespace stageline
