#include "diagnosis/causes/late_starts/late_starts.h"
#include "diagnosis/causes/telling.h"
#include "model/run_extent.h"

namespace stageline {

Telling tell_late_starts(std::span<const Cause* const> causes, const TellContext& context) {
  constexpr double kWorthSaying = 0.01;
  const Cause& c = *causes.front();
  const auto& own = c.own.as<LateStartsOwn>();
  Args args = context.args(c);
  args.set("ranks", grouped(own.ranks)).set("by", percent(own.worst_share));
  args.flag("guessed", own.messages_unknown).flag("hosts_alone", of_hosts_alone(context.trace));
  args.set("open", own.open_share >= kWorthSaying ? percent(own.open_share) : "");
  args.set("reason", words(own.hosts_prompt ? "host.late_starts.prompt" : "host.late_starts.either", args));
  Telling telling = say_cause("host.late_starts", "host.late_starts", args);
  telling.rank = c.figures.rank;
  if (own.messages_unknown) telling.key = "host messages";
  telling.table = {"theory", "late-reasons"};
  return telling;
}

}  // namespace stageline
