#include "facts/step_means.h"

#include "facts/period_facts.h"
#include "facts/pipeline_facts.h"
#include "model/statistics.h"

namespace stageline {
namespace {

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
    std::vector<double> usual, complete;
    for (size_t s = 0; s < out.numbers.size(); ++s) {
      if (!sums.is_incomplete(out.numbers[s])) complete.push_back(out.span_ns[s]);
      if (!sums.is_outlier(out.numbers[s])) usual.push_back(out.span_ns[s]);
    }
    out.usual = {std::ssize(usual), mean_of(usual), periods.usual_ns};
    out.all = {std::ssize(complete), mean_of(complete), periods.mean_ns};
    return out;
  }
};

}  // namespace

const StepMeans& step_means_of(const Run& run) { return run.fact<StepMeansFact>(); }

}  // namespace stageline
