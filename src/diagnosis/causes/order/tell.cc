#include "diagnosis/causes/order/order.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_order(std::span<const Cause* const> causes, const TellContext& context) {
  Args args = context.args(*causes.front());
  const std::vector<Divergence>& divergences = context.recognition.divergences;
  Telling telling;
  if (divergences.empty()) {  // the recognition is another one than the cause's
    telling = say_cause("schedule.order", "schedule.order.lists", args);
  } else {
    const Divergence& worst = divergences.front();  // orders come first
    const int32_t rank = context.trace.parts[worst.part].rank;
    args.set("stage", int64_t{worst.stage}).set("step", int64_t{worst.step}).set("rank", int64_t{rank});
    telling = say_cause("schedule.order", "schedule.order", args.set("divergence", worst.sentence));
    telling.step = worst.step, telling.rank = rank;
  }
  telling.key = "order";
  telling.table = {"schedule", "divergence"};
  return telling;
}

}  // namespace stageline
