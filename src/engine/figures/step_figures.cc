// Figures of steps: how many there are and how long they take.
#include "engine/engine.h"
#include "engine/figures/figures.h"
#include "facts/pipeline_facts.h"
#include "model/run_extent.h"
#include "pipeline/sums/step_ratios.h"

namespace stageline::figures {
namespace {

bool has_cells(const SharedRun& run) { return run->trace().cells.size() > 0; }

// One figure; unknown where the value is not above zero.
std::vector<Figure> above_zero(const char* name, double value) {
  if (value > 0) return {{.name = name, .value = value}};
  return {{.name = name, .why_unknown = words("figure.no_steps")}};
}

// Returns a figure that only pipelines have.
std::vector<Figure> of_pipeline(const SharedRun& run, const char* name, double value) {
  if (!has_cells(run)) return {{.name = name, .why_unknown = words("figure.pipelines_only")}};
  return {{.name = name, .value = value}};
}

}  // namespace

std::vector<Figure> ranks(const SharedRun& run) {
  return {{.name = "ranks", .value = static_cast<double>(run->trace().parts.size())}};
}

std::vector<Figure> steps_all(const SharedRun& run) {
  return {{.name = "steps_all", .value = static_cast<double>(step_count_of(run->trace()))}};
}

std::vector<Figure> steps_usual(const SharedRun& run) { return above_zero("steps_usual", explained_run(*run).steps); }
std::vector<Figure> step_period(const SharedRun& run) { return above_zero("step_period", explained_run(*run).step_ns); }

std::vector<Figure> steps_no_outliers(const SharedRun& run) {
  return above_zero("steps_no_outliers", explained_run(*run).parts_of_steps);
}

std::vector<Figure> step_period_no_outliers(const SharedRun& run) {
  return above_zero("step_period_no_outliers", explained_run(*run).parts_of_ns);
}

std::vector<Figure> step_period_all(const SharedRun& run) {
  return above_zero("step_period_all", explained_run(*run).wall_ns);
}

std::vector<Figure> step_span(const SharedRun& run) {
  const Explanation& e = explained_run(*run);
  return of_pipeline(run, "step_span", e.step_ns - e.gap_ns);
}

std::vector<Figure> step_gap(const SharedRun& run) { return of_pipeline(run, "step_gap", explained_run(*run).gap_ns); }

std::vector<Figure> bubble(const SharedRun& run) {
  const double share = has_cells(run) ? mean_bubble(sums_of(*run)) : std::nan("");
  if (std::isnan(share)) return {{.name = "bubble", .why_unknown = words("figure.pipelines_only")}};
  return {{.name = "bubble", .value = share}};
}

// The stages of a run that has at least two.
std::vector<Figure> stage_ratio(const SharedRun& run) {
  std::vector<Figure> out;
  if (!has_cells(run)) return out;
  for (const StageRatio& stage : usual_stage_ratios(run->trace(), sums_of(*run)))
    if (std::isfinite(stage.ratio))
      out.push_back({.name = "stage_ratio." + std::to_string(stage.stage), .value = stage.ratio});
  return out;
}

std::vector<Figure> recording(const SharedRun& run) { return above_zero("recording", recording_ns(run->trace())); }

}  // namespace stageline::figures
