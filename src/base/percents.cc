#include "base/percents.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/number.h"

namespace stageline {

std::vector<std::string> percents(const std::vector<double>& shares) {
  constexpr double kTenths = 1000;  // of a percent in the whole
  constexpr double kNearWhole = 0.0005;
  std::vector<std::string> out;
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<double> tenths;
  for (const double share : shares) tenths.push_back(share * kTenths);
  if (shares.size() < 2 || !(std::abs(sum - 1) < kNearWhole)) {
    for (const double share : shares) out.push_back(percent(share));
    return out;
  }
  std::vector<double> whole(tenths.size());
  // As printed: what lies half-way between two tenths is not half-way in a double.
  whole[0] = std::round(parse_double(fixed(shares[0] * 100, 1)).value_or(0) * 10);
  double open = kTenths - whole[0];
  for (size_t i = 1; i < tenths.size(); ++i) open -= whole[i] = std::floor(tenths[i]);
  std::vector<size_t> order(tenths.size() - 1);
  std::iota(order.begin(), order.end(), size_t{1});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return tenths[a] - whole[a] > tenths[b] - whole[b]; });
  for (size_t i = 0; i < order.size() && open >= 1; ++i, --open) ++whole[order[i]];
  for (const double tenth : whole) out.push_back(percent(tenth / kTenths));
  return out;
}

}  // namespace stageline
