#include "base/text.h"
#include "diagnosis/causes/tail/tail.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_tail(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<TailOwn>();
  const Place& place = c.place();
  Args args = context.args(c);
  args.set("lost_time", human_duration(c.price.lost_ns));
  Telling telling;
  if (place.kind == PlaceKind::kHost) {  // idle time before tails
    telling = say_cause("tail.exposed", "tail.exposed.idle", args);
    telling.key = place.name.empty() ? "tail:idle" : "tail:" + dashed(place.name);
  } else {
    const bool optimizer = place.kind == PlaceKind::kOptimizer;
    args.set("own", own.own_ns > 0 ? human_duration(own.own_ns) : "");
    args.set("others", own.others_ns > 0 ? human_duration(own.others_ns) : "");
    args.flag("lone", context.replicas <= 1);
    args.set("what", words(optimizer ? "tail.exposed.what.optimizer" : "tail.exposed.what.collective", args));
    telling = say_cause("tail.exposed",
                        place.stage != kUnknown ? "tail.exposed.stage"
                        : optimizer             ? "tail.exposed.optimizer"
                                                : "tail.exposed",
                        args);
    if (!own.twin.empty())
      telling.detail +=
          words("tail.exposed.twin", Args().set("twin", own.twin).set("others", human_duration(own.others_ns)));
  }
  telling.table = {"waterfall", "waterfall"};
  return telling;
}

}  // namespace stageline
