#include "diagnosis/causes/late_launch/late_launch.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_late_launch(std::span<const Cause* const> causes, const Told& told) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<LateLaunchOwn>();
  Args args = told.args(c);
  args.set("others", own.others_ns > 0 ? human_duration(own.others_ns) : "");
  if (own.direction != CellKind::kOther) args.set("kind", cell_text(own.direction));
  Telling said = say_cause("rank.late_launch", "rank.late_launch", args);
  said.table = {"stragglers", "straggler-workers"};
  return said;
}

}  // namespace stageline
