// All ranks are slower from a step on, until a step, more (or less) with every step, in every n-th step, or in some
// steps.
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

constexpr double kSureShape = 4;    // a shape that all follow must rise by this many times the scatter of single steps
constexpr double kNearlyAll = 0.9;  // minimum share of the workers that must become slower where all do

std::string steps_key(const std::string& shape) { return "all " + shape; }

}  // namespace

// All ranks are slower from a step on, until a step, more (or less) with every step, in every n-th step, or in some
// steps. Possible reasons are a hot device, a slower file system under a lazy loader, longer data, a regular evaluation
// or profiler, and other jobs on the same machines. In the first steps, warm-up is another.
void suspect_all_slow(CauseScene& scene, std::vector<Suspect>& out) {
  const auto loads = scene.times.worker_loads();
  std::vector<double> by_step(scene.graph.steps.size(), std::nan(""));
  for (size_t s = 0; s < by_step.size(); ++s) {
    std::vector<double> values;
    for (const auto& load : loads)
      if (scene.counts[s] && !std::isnan(load[s])) values.push_back(load[s]);
    // The median does not depend on what one stage does.
    if (!values.empty()) by_step[s] = median_of(std::move(values));
  }
  const Course course = course_of(by_step);
  if (!course.varies()) return;
  const double fast = std::min(course.low, course.high), slow = std::max(course.low, course.high);
  if (!(slow >= kSlowCause * fast) || slow - fast < kSureShape * course.noise) return;
  // Nearly all workers must take part: in the slower half of the shape they must take longer by at least half of what
  // the shape does.
  const double middle = (fast + slow) / 2;
  size_t rose = 0, known_ones = 0;
  for (const auto& load : loads) {
    double sum[2] = {0, 0}, count[2] = {0, 0};
    for (size_t s = 0; s < by_step.size(); ++s)
      if (scene.counts[s] && !std::isnan(load[s]))
        sum[course.level[s] > middle] += load[s], ++count[course.level[s] > middle];
    if (!(count[0] > 0) || !(count[1] > 0)) continue;
    const double min = (slow / fast - 1) / (course.kind == CourseKind::kTrend ? 4 : 2);
    ++known_ones;
    rose += sum[1] / count[1] >= (1 + min) * sum[0] / count[0];
  }
  if (known_ones == 0 || rose < kNearlyAll * known_ones) return;
  Suspect suspect;
  suspect.cause.kind = &all_slow_cause;
  suspect.cause.figures.ratio = slow / fast;
  for (size_t s = 0; s < by_step.size(); ++s) {
    suspect.cause.in_steps.all += scene.counts[s];
    suspect.cause.in_steps.count += scene.counts[s] && course.level[s] > middle;
  }
  suspect.cause.course = course;
  suspect.cause.certain = true;
  suspect.without = [&scene, course, fast](uint32_t op, double& dur, double&) {
    if (scene.times.worker_of(op) != CellTimes::kNone) dur *= fast / course.level[step_of(scene.graph, op)];
  };
  out.push_back(std::move(suspect));
}

Telling tell_all_slow(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const Course& course = c.course;
  const bool trend = course.kind == CourseKind::kTrend, every = course.kind == CourseKind::kEvery;
  const int32_t at = context.step_number(course.from);
  Args args = context.args(c);
  Telling telling;
  if (course.kind == CourseKind::kSome) {
    constexpr size_t kShown = 8;
    std::vector<std::string> steps;
    for (size_t s = 0; s < course.level.size(); ++s)
      if (course.level[s] == course.high) steps.push_back(std::to_string(context.step_number(s)));
    telling = say_cause("run.slower", "run.slower.some", args.set("which", some_of(steps, kShown)));
    for (size_t s = course.level.size(); s-- > 0;)
      if (course.level[s] == course.high) telling.step = context.step_number(s);
    telling.key = steps_key("steps");
  } else if (course.high < course.low) {  // it is over after a while
    args.flag("trend", trend).set("at", int64_t{at});
    telling = say_cause("run.slower", "run.slower.first", args);
    if (!trend) telling.step = context.list.first_step;
    telling.key = steps_key(trend ? "trend" : "until:" + std::to_string(at));
  } else {
    args.flag("trend", trend).set("at", int64_t{at}).set("nth", nth_text(course.every));
    telling = say_cause("run.slower", every ? "run.slower.every" : "run.slower", args);
    if (!trend) telling.step = at;
    telling.key = steps_key(trend   ? "trend"
                            : every ? "every:" + std::to_string(course.every)
                                    : "onset:" + std::to_string(at));
  }
  telling.table = {"stragglers", ""};
  return telling;
}

}  // namespace stageline
