#include "diagnosis/causes/slow_ranks/slow_ranks.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

namespace {

Telling tell_graded(const Cause& c, const Told& told) {
  Args args = told.args(c);
  args.set("fastest", int64_t{c.own.as<SlowRanksOwn>().fastest}).set("otherwise", told.share(c.price.otherwise_ns));
  return say_cause("ranks.slow", "ranks.slow.graded", args);
}

}  // namespace

Telling tell_slow_ranks(std::span<const Cause* const> causes, const Told& told) {
  constexpr size_t kShown = 8;
  const Cause& c = *causes.front();
  Telling said;
  if (c.own.as<SlowRanksOwn>().graded()) {
    said = tell_graded(c, told);
  } else {
    std::vector<std::string> ranks, replicas;
    for (const Place& place : c.places) {
      for (const int32_t rank : place.ranks) ranks.push_back(std::to_string(rank));
      if (place.kind == PlaceKind::kReplicas) replicas.push_back(std::to_string(place.replica));
    }
    Args args = told.args(c);
    args.set("group", some_of(ranks, kShown)).set("replicas", some_of(replicas, replicas.size()));
    args.set("machine", c.place().name);
    const char* who = replicas.size() > 1       ? "ranks.slow.replicas"
                      : replicas.size() == 1    ? "ranks.slow.replica"
                      : !c.place().name.empty() ? "ranks.slow.machine"
                                                : "ranks.slow.ranks";
    const Text course = {std::string(args.of("course", false)), std::string(args.of("course", true))};
    args.set("slow", words(who, args));
    args.set("when", !course.empty() ? course : c.sometimes ? words("ranks.slow.when", args) : Text());
    said = say_cause("ranks.slow", "ranks.slow", args);
  }
  said.table = {"stragglers", "straggler-workers"};
  return said;
}

}  // namespace stageline
