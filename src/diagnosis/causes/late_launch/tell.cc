#include "diagnosis/causes/late_launch/late_launch.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_late_launch(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<LateLaunchOwn>();
  Args args = context.args(c);
  const bool others = own.others_ns > 0, one_kind = own.direction != CellKind::kOther;
  args.set("others", others ? human_duration(own.others_ns) : "");
  if (!c.or_else.empty()) args.set("guessed", int64_t{c.or_else.front().from_stage});
  args.set("messages", c.or_else.empty() ? Text{} : words("rank.late_launch.messages", args));
  if (one_kind) args.set("kind", cell_text(own.direction));
  args.set("late", words(others ? "rank.late_launch.others.late" : "rank.late_launch.others", args));
  args.set("check", words(one_kind ? "rank.late_launch.check.kind" : "rank.late_launch.check"));
  args.set("earlier", words(others ? "rank.late_launch.earlier.late" : "rank.late_launch.earlier"));
  Telling telling = say_cause("rank.late_launch", "rank.late_launch", args);
  telling.table = {"stragglers", "straggler-workers"};
  return telling;
}

}  // namespace stageline
