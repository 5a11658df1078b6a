#include "diagnosis/causes/slow_ranks/slow_ranks.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

namespace {

Telling tell_graded(const Cause& c, const TellContext& context) {
  Args args = context.args(c);
  args.set("fastest", int64_t{c.own.as<SlowRanksOwn>().fastest}).set("otherwise", context.share(c.price.otherwise_ns));
  return say_cause("ranks.slow", "ranks.slow.graded", args);
}

}  // namespace

Telling tell_slow_ranks(std::span<const Cause* const> causes, const TellContext& context) {
  constexpr size_t kShown = 8;
  const Cause& c = *causes.front();
  Telling telling;
  if (c.own.as<SlowRanksOwn>().graded()) {
    telling = tell_graded(c, context);
  } else {
    std::vector<std::string> ranks, replicas;
    for (const Place& place : c.places) {
      for (const int32_t rank : place.ranks) ranks.push_back(std::to_string(rank));
      if (place.kind == PlaceKind::kReplicas) replicas.push_back(std::to_string(place.replica));
    }
    Args args = context.args(c);
    args.set("group", some_of(ranks, kShown)).set("replicas", some_of(replicas, replicas.size()));
    args.set("machine", c.place().name);
    const char* who = replicas.size() > 1       ? "ranks.slow.replicas"
                      : replicas.size() == 1    ? "ranks.slow.replica"
                      : !c.place().name.empty() ? "ranks.slow.machine"
                                                : "ranks.slow.ranks";
    const Text course = {std::string(args.of("course", false)), std::string(args.of("course", true))};
    args.set("slow", words(who, args));
    args.set("when", !course.empty() ? course : c.sometimes ? words("ranks.slow.when", args) : Text());
    telling = say_cause("ranks.slow", "ranks.slow", args);
  }
  telling.table = {"stragglers", "straggler-workers"};
  return telling;
}

}  // namespace stageline
