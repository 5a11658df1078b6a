// How late the late messages of a link are. Such delays follow Pareto's law from the shortest one on, as delays by
// retransmission do.
//
//     late by 8 … 60 ms, thirteen of them        320 ms: one of fourteen by the same law in one run of eight
#pragma once

#include <vector>

namespace stageline {

class LateLengths {
 public:
  LateLengths() = default;
  explicit LateLengths(const std::vector<double>& late_ns);
  // Returns whether a message that is late by `ns` may be of the same kind as these. Then at least one run of a hundred
  // has one that late.
  bool may_hold(double ns) const;

 private:
  // spread_: mean logarithm of the ratios to the shortest one (Hill's estimator).
  double min_ns_ = 0, spread_ = 0, count_ = 0;
};

}  // namespace stageline
