#include "diagnosis/causes/cause.h"

namespace stageline {

void sort_causes(std::vector<Cause>& causes) {
  sort_stably(causes, [](const Cause& a, const Cause& b) {
    const double of_a = a.price.best_ns(), of_b = b.price.best_ns();
    return of_a != of_b ? of_a > of_b : a.price.lost_ns > b.price.lost_ns;
  });
}

LateLengths::LateLengths(const std::vector<double>& late_ns) {
  if (late_ns.size() < 3) return;
  min_ns_ = *std::ranges::min_element(late_ns);
  if (!(min_ns_ > 0)) return;
  count_ = late_ns.size();
  // The shortest adds nothing, so it is not counted.
  for (const double ns : late_ns) spread_ += std::log(ns / min_ns_) / (count_ - 1);
}

bool LateLengths::may_hold(double ns) const {
  constexpr double kChance = 0.01;
  if (!(spread_ > 0) || !(ns > min_ns_)) return count_ > 0 && ns <= min_ns_;
  return (count_ + 1) * std::pow(ns / min_ns_, -1 / spread_) >= kChance;
}

}  // namespace stageline
