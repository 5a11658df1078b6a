#include "diagnosis/causes/telling.h"
#include "diagnosis/causes/unsplit/unsplit.h"

namespace stageline {

Telling tell_unsplit(std::span<const Cause* const> causes, const Told& told) {
  const Cause& c = *causes.front();
  Args args = told.args(c);
  if (c.figures.stage != kUnknown) args.set("stage", int64_t{c.figures.stage});
  Telling said = say_cause("schedule.unsplit", "schedule.unsplit", args);
  said.key = "order";
  said.table = {"schedule", "recognition"};
  return said;
}

}  // namespace stageline
