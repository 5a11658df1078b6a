// Decides whether a mean over steps is more than chance.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace stageline {

// Returns whether the mean of `count` independent values, whose standard error is `error`, differs from 0. It is
// Student's t test, two-sided, at 99 %, so three steps have to agree better than thirty. A NaN error (there is one
// value) counts as no evidence against the mean.
inline bool beyond_noise(double mean, double error, int64_t count) {
  constexpr std::array<double, 12> kQuantile = {63.66, 9.92, 5.84, 4.60, 4.03, 3.71,
                                                3.50,  3.36, 3.25, 3.17, 3.11, 3.05};  // by degrees of freedom, from 1
  if (std::isnan(error)) return mean != 0;
  const size_t df = std::max<int64_t>(count - 1, 1);
  const double t = df <= kQuantile.size() ? kQuantile[df - 1] : df <= 30 ? 2.98 : 2.75;
  return std::abs(mean) > t * error;
}

}  // namespace stageline
