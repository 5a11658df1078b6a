#include "diagnosis/causes/slow_rank/slow_rank.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_slow_rank(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  Args args = context.args(c);
  args.set("worker", context.rank(c.figures.rank, c.own.as<SlowRankOwn>().of_peers_too));
  Telling telling = say_cause("rank.slow", "rank.slow", args);
  telling.table = {"stragglers", "straggler-workers"};
  return telling;
}

}  // namespace stageline
