#include "diagnosis/causes/telling.h"
#include "diagnosis/causes/uneven_data/uneven_data.h"

namespace stageline {

Telling tell_uneven_data(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<UnevenDataOwn>();
  Args args = context.args(c);
  args.set("by", percent(own.deviation)).set("correlation", fixed(own.correlation, 2)).flag("shared", c.estimated);
  // Replicas that have more work in every step: the same data may cause that.
  std::vector<std::string> replicas;
  double alone_ns = 0, ratio = 1;
  for (const Cause* with : causes.subspan(1)) {
    alone_ns = std::max(alone_ns, with->price.lost_ns), ratio = std::max(ratio, with->figures.ratio);
    for (const Place& place : with->places) replicas.push_back(std::to_string(place.replica));
  }
  if (!replicas.empty()) {
    args.set("replicas", some_of(replicas, replicas.size()));
    args.set("more", words(replicas.size() > 1 ? "data.uneven.replicas" : "data.uneven.replica", args));
  }
  Telling telling = say_cause("data.uneven", "data.uneven", args);
  if (!replicas.empty() && c.price.joint_ns > 0) {
    args.set("ratio", words("times", Args().set("ratio", fixed(ratio, 2)))).set("alone", context.share(alone_ns));
    args.set("data", context.share(c.price.lost_ns)).set("joint", context.share(c.price.joint_ns));
    telling.more = words("data.uneven.joint", args);
  }
  telling.key = "routing";
  telling.table = {"stragglers", "forward-backward"};
  return telling;
}

}  // namespace stageline
