#include "server/page/run_trend.h"

#include <optional>

#include "base/change_points.h"
#include "base/error_words.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "diagnosis/compare_runs.h"
#include "diagnosis/explain.h"
#include "engine/diff_json.h"
#include "engine/mean_step.h"
#include "facts/run.h"

namespace stageline {

Result<std::string> trend_json(const std::vector<TrendInput>& inputs) {
  JsonWriter json;
  json.begin_object().key("runs").begin_array();
  std::vector<double> series;  // of the runs that have steps, in order
  std::vector<size_t> at;      // for each of them, the index of its input
  std::optional<Trace> before;
  double before_ns = 0;  // its step
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TrendInput& input = inputs[i];
    json.begin_object().field("title", input.title).field("path", input.path);
    Result<Trace> trace = input.read();
    Explanation explanation;
    MeanStep step;
    Text why_not = trace ? Text() : error_text(trace.error());
    std::string diff = "{}";
    if (trace) {
      explanation = explain(Run(*trace), true);
      const Result<MeanStep> found = mean_step_of(explanation, input.path);
      if (found) step = *found;
      if (!found) why_not = error_text(found.error());
    }
    // This is the change between the two steps shown; the diff below is of the mean over all steps, and gives the
    // reason.
    json.maybe("change_share", step.ns > 0 && before_ns > 0, step.ns / before_ns - 1);
    if (step.ns > 0) {
      if (before)
        if (const Result<RunDiff> found = compare_runs(Run(*before), Run(*trace)); found) diff = diff_json(*found);
      series.push_back(step.ns);
      at.push_back(i);
      before = std::move(*trace);
      before_ns = step.ns;
    }
    json.field("steps", step.steps).field("step_ns", step.ns);
    const Text& title = explanation.headline.title;
    json.list("headline", std::array{title.en, title.zh});
    if (!why_not.empty()) json.list("why_not", std::array{why_not.en, why_not.zh});
    json.key("diff").raw(diff).end_object();
  }
  if (series.size() < 2) return worded_error(ErrorCode::kUnavailable, "trend.no_steps");
  json.end_array().objects("changes", change_points(series), [&](const ChangePoint& point) {
    json.field("at", at[point.at]).field("before_ns", point.before);
    json.field("after_ns", point.after).field("p", point.p);
  });
  return json.end_object().take();
}

}  // namespace stageline
