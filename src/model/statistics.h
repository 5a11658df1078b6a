// Statistics as numpy and pandas define them, so that our numbers can be compared with theirs.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Rounds as numpy.round does: scale, round half to even, scale back.
inline double round_to(double value, int decimals) {
  double scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  return std::nearbyint(value * scale) / scale;
}

// Rounds as Python's round() does, by the exact value of the double: 0.025 is stored a little above 0.025 and becomes
// 0.03.
inline double round_exactly(double value, int decimals) {
  return std::isfinite(value) ? parse_double(fixed(value, decimals)).value_or(value) : value;
}

// Returns part / whole; NaN where `whole` is not above 0.
template <typename Part, typename Whole> double share_of(Part part, Whole whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : kNaN;
}

// Returns part / whole; 0 where `whole` is not above 0.
template <typename Part, typename Whole> double share_or_zero(Part part, Whole whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

struct Description {  // pandas' describe(): n−1 standard deviation, linear percentiles
  int64_t count = 0;
  double mean = kNaN, std = mean, min = mean, p25 = mean, p50 = mean, p75 = mean, max = mean;
};

// Interpolates linearly between order statistics; `sorted` is ascending and not empty.
inline double quantile(const std::vector<double>& sorted, double p) {
  const double at = (sorted.size() - 1) * p;
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

// Returns the median (of an even number of values the mean of the middle two); NaN when there are none.
double median_of(std::vector<double> values);
double median_in_place(std::span<double> values);  // reorders `values`
// Returns a percentile, linear between values in any order, of which there must be one at least; reorders them.
// O(values).
double percentile_of(std::vector<int64_t>& values, double share);

inline double mean_of(const std::vector<double>& values) {
  const double sum = sum_over<double>(values);
  return values.empty() ? kNaN : sum / values.size();
}

// Returns the sample standard deviation (n−1); NaN for fewer than two values.
inline double sample_std(const std::vector<double>& values) {
  if (values.size() < 2) return kNaN;
  const double mean = mean_of(values);
  const double sum = sum_over<double>(values, [&](const double v) { return (v - mean) * (v - mean); });
  return std::sqrt(sum / (values.size() - 1));
}

inline Description describe(std::vector<double> values) {
  Description d;
  d.count = values.size();
  if (values.empty()) return d;
  d.mean = mean_of(values);
  d.std = sample_std(values);
  std::sort(values.begin(), values.end());
  d.min = values.front();
  d.max = values.back();
  d.p25 = quantile(values, 0.25);
  d.p50 = quantile(values, 0.5);
  d.p75 = quantile(values, 0.75);
  return d;
}

}  // namespace stageline
