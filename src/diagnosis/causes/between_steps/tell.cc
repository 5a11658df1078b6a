#include "diagnosis/causes/between_steps/between_steps.h"
#include "diagnosis/causes/telling.h"
#include "model/row_names.h"

namespace stageline {

Telling tell_between_steps(std::span<const Cause* const> causes, const TellContext& context) {
  constexpr size_t kShown = 6;
  const Cause& c = *causes.front();
  const auto& own = c.own.as<BetweenStepsOwn>();
  const std::string& name = c.place().name;
  const bool one = c.figures.count == 1;
  Args args = context.args(c);
  if (c.sometimes) {
    if (context.list.wall_ns > 0) args.set("lost", percent(c.price.lost_ns / context.list.wall_ns));
    args.set("step", int64_t{own.at_steps.front()});
  }
  std::vector<std::string> steps;
  for (const int32_t step : own.at_steps) steps.push_back(std::to_string(step));
  const bool only = c.figures.rank != kUnknown && !name.empty();  // it is on one rank
  args.set("steps", some_of(steps, kShown)).flag("only", only).flag("unread", context.list.replicas_unread);
  args.flag("workers", has_loader_processes(context.trace.names));
  if (name.empty())
    args.set("unknown", words(own.may_be_optimizer ? "between.steps.optimizer" : "between.steps.unknown", args));
  else
    args.set("unknown", name == kDataLoader ? words("between.steps.loader", args) : Text());
  args.set("saves", words(c.sometimes ? "between.steps.saves.mean" : "between.steps.saves", args));
  Telling telling = say_cause("between.steps", "between.steps", args);
  if (c.sometimes) telling.title = words(one ? "between.steps.one.title" : "between.steps.some.title", args);
  if (c.sometimes && one) telling.step = own.at_steps.front();
  if (only) telling.rank = c.figures.rank;
  telling.table = {"waterfall", "waterfall-periods"};
  return telling;
}

}  // namespace stageline
