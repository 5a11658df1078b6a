#include "diagnosis/causes/order/order.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_order(std::span<const Cause* const> causes, const Told& told) {
  Args args = told.args(*causes.front());
  const std::vector<Divergence>& divergences = told.recognition.divergences;
  Telling said;
  if (divergences.empty()) {  // the recognition is another one than the cause's
    said = say_cause("schedule.order", "schedule.order.lists", args);
  } else {
    const Divergence& worst = divergences.front();  // orders come first
    const int32_t rank = told.trace.parts[worst.part].rank;
    args.set("stage", int64_t{worst.stage}).set("step", int64_t{worst.step}).set("rank", int64_t{rank});
    said = say_cause("schedule.order", "schedule.order", args.set("divergence", worst.sentence));
    said.step = worst.step, said.rank = rank;
  }
  said.key = "order";
  said.table = {"schedule", "divergence"};
  return said;
}

}  // namespace stageline
