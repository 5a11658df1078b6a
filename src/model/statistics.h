// Statistics as numpy and pandas define them, so that numbers compare.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace stageline {

// numpy.round: scale, round half to even, scale back.
inline double round_to(double value, int decimals) {
  double scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  return std::nearbyint(value * scale) / scale;
}

struct Description {  // pandas' describe(): n−1 standard deviation, linear percentiles
  int64_t count = 0;
  double mean = std::numeric_limits<double>::quiet_NaN(), std = mean, min = mean, p25 = mean, p50 = mean, p75 = mean,
         max = mean;
};

// Linear interpolation between order statistics; `sorted` ascending and not empty.
inline double quantile(const std::vector<double>& sorted, double p) {
  const double at = static_cast<double>(sorted.size() - 1) * p;
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

inline double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(values.size());
}

// Sample standard deviation (n−1); NaN for fewer than two values.
inline double sample_std(const std::vector<double>& values) {
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const double mean = mean_of(values);
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

inline Description describe(std::vector<double> values) {
  Description d;
  d.count = static_cast<int64_t>(values.size());
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
