#include "diagnosis/causes/all_slow/all_slow.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

namespace {

std::string steps_key(const std::string& shape) { return "all " + shape; }

}  // namespace

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
