#include "diagnosis/diff/diff_side.h"

#include <cmath>

#include "pipeline/sums/course.h"
#include "pipeline/sums/pipeline_sums.h"

namespace stageline {

Result<Side> side_of(const Trace& trace, const char* name, Diagnostics& notes) {
  Diagnostics own;
  const PipelineSums sums = pipeline_sums(trace);
  Result<StepGraph> graph = build_step_graph(trace, sums, own, LaunchRule::kInOrder);
  if (!graph) {
    Error e = graph.error();
    e.what = std::string("run ") + name + ": " + e.what;
    return e;
  }
  for (const Diagnostic& d : own.items())
    notes.add({d.name + (*name == 'A' ? ".a" : ".b"), d.severity,
               words("diff.note", Args().set("run", std::string(name)).set("note", d.message)), 1, d.first});
  Side side{trace, std::move(*graph), {}, {}, {}, step_periods(trace, sums), 0};
  for (size_t s = 0; s < side.graph.steps.size(); ++s) {
    side.usual.push_back(!sums.is_outlier(side.graph.steps[s].step));
    if (!side.usual.back()) continue;
    side.steps.push_back(s);
    side.step_ns.push_back(side.graph.steps[s].span_ns);
  }
  const double usual_ns = mean_of(side.step_ns);
  for (size_t s = 0; s < side.graph.steps.size(); ++s)
    if (!side.usual[s]) side.long_ns += (side.graph.steps[s].span_ns - usual_ns) / side.graph.steps.size();
  return side;
}

double standard_error(const std::vector<double>& values, int64_t independent) {
  const Course course = course_of(values);
  const bool shaped = course.varies() && course.kind != CourseKind::kSome;
  return (shaped ? course.noise : sample_std(values)) / std::sqrt(independent);
}

}  // namespace stageline
