#include "diagnosis/causes/slow_rank/slow_rank.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_slow_rank(std::span<const Cause* const> causes, const Told& told) {
  const Cause& c = *causes.front();
  Args args = told.args(c);
  args.set("worker", told.rank(c.figures.rank, true));
  Telling said = say_cause("rank.slow", "rank.slow", args);
  said.table = {"stragglers", "straggler-workers"};
  return said;
}

}  // namespace stageline
