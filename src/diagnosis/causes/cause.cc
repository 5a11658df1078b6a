#include "diagnosis/causes/cause.h"

#include <algorithm>
#include <cmath>

namespace stageline {

LateLengths::LateLengths(const std::vector<double>& late_ns) {
  if (late_ns.size() < 3) return;
  min_ns_ = *std::min_element(late_ns.begin(), late_ns.end());
  if (!(min_ns_ > 0)) return;
  count_ = static_cast<double>(late_ns.size());
  // The shortest adds nothing, so it is not counted.
  for (const double ns : late_ns) spread_ += std::log(ns / min_ns_) / (count_ - 1);
}

bool LateLengths::may_hold(double ns) const {
  constexpr double kChance = 0.01;
  if (!(spread_ > 0) || !(ns > min_ns_)) return count_ > 0 && ns <= min_ns_;
  return (count_ + 1) * std::pow(ns / min_ns_, -1 / spread_) >= kChance;
}

const CauseInfo& cause_info(CauseKind kind) {
  static constexpr CauseInfo kCauses[] = {
#define CAUSE(kind, name, finding, suspicion) {name, finding, suspicion},
#include "diagnosis/causes/causes.def"
#undef CAUSE
  };
  return kCauses[static_cast<size_t>(kind)];
}

std::string_view finding_id(const Cause& cause) {
  if (cause.kind == CauseKind::kPosition && cause.stage != kUnknown) return "cell.slow";
  return cause_info(cause.kind).finding;
}

void sort_causes(std::vector<Cause>& causes) {
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) {
    return a.price_ns() != b.price_ns() ? a.price_ns() > b.price_ns() : a.lost_ns > b.lost_ns;
  });
}

}  // namespace stageline
