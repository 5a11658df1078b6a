// Unsplit backwards: whole backwards where the schedule splits weight gradients off. order/order.cc finds them.
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_unsplit(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  Args args = context.args(c);
  if (c.figures.stage != kUnknown) args.set("stage", int64_t{c.figures.stage});
  Telling telling = say_cause("schedule.unsplit", "schedule.unsplit", args);
  telling.key = "order";
  telling.table = {"schedule", "recognition"};
  return telling;
}

}  // namespace stageline
