// The distance of a mean over steps from the true one: whether it is beyond noise, and the interval around it.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Holds two-sided quantiles of Student's t, by degrees of freedom from 1 to 12, up to 30, and beyond.
struct StudentT {
  std::array<double, 12> few;
  double up_to_30, beyond;
  // The quantile for the mean of `count` values.
  constexpr double of(int64_t count) const {
    const size_t df = std::max<int64_t>(count - 1, 1);
    return df <= few.size() ? few[df - 1] : df <= 30 ? up_to_30 : beyond;
  }
};
inline constexpr StudentT kT95 = {
    {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18}, 2.16, 2.04};
inline constexpr StudentT kT99 = {
    {63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05}, 2.98, 2.75};

// Returns whether the mean of `count` independent values, whose standard error is `error`, differs from 0. It is
// Student's t test at 99 %, so three steps have to agree better than thirty. A NaN error (there is one value) counts as
// no evidence against the mean.
inline bool beyond_noise(double mean, double error, int64_t count) {
  return std::isnan(error) ? mean != 0 : std::abs(mean) > kT99.of(count) * error;
}

// Returns half the width of the interval around that mean that holds the true one in 95 of 100 runs; 0 for a NaN error.
inline double half_interval(double error, int64_t count) { return error > 0 ? kT95.of(count) * error : 0; }

}  // namespace stageline
