#include "diagnosis/diff/diff_side.h"

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

double error_by_cells(const Side& side) {
  struct Sum {
    double ns = 0, squares = 0, count = 0;
  };
  const StepGraph& g = side.graph;
  std::map<std::tuple<int32_t, CellKind, int32_t>, Sum> alike;  // by part, kind and chunk
  for (const size_t step : side.steps)
    for (uint32_t op = g.steps[step].begin; op < g.steps[step].end; ++op) {
      if (!is_compute(g.kind[op])) continue;
      const double ns = g.dur_ns[op] + std::max(0.0, g.delay_ns[op]);
      Sum& sum = alike[{g.part[op], g.kind[op], g.chunk[op]}];
      sum.ns += ns, sum.squares += ns * ns, ++sum.count;
    }
  std::map<int32_t, double> of_part;
  for (const auto& [key, sum] : alike)
    of_part[std::get<0>(key)] += std::max(0.0, sum.squares - sum.ns * sum.ns / sum.count);
  double max = max_over<double>(of_part, [&](const auto& entry) { return entry.second; });
  return std::sqrt(max) / side.steps.size();
}

double standard_error(const std::vector<double>& values, int64_t independent) {
  const Course course = course_of(values);
  const bool shaped = course.varies() && course.kind != CourseKind::kSome;
  return (shaped ? course.noise : sample_std(values)) / std::sqrt(independent);
}

}  // namespace stageline
