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
    if (!replicas.empty()) args.set("replicas", some_of(replicas, replicas.size())).flag("many", replicas.size() > 1);
    if (!c.place().name.empty()) args.set("machine", c.place().name);
    said = say_cause("ranks.slow", "ranks.slow", args.set("group", some_of(ranks, kShown)));
  }
  said.table = {"stragglers", "straggler-workers"};
  return said;
}

}  // namespace stageline
