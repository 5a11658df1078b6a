#include "model/statistics.h"

namespace stageline {

double median_in_place(std::span<double> values) {
  if (values.empty()) return kNaN;
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 == 1 ? *middle : (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double median_of(std::vector<double> values) { return median_in_place(values); }

double percentile_of(std::vector<int64_t>& values, double share) {
  const double at = share * (values.size() - 1);
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(values.begin(), below, values.end());
  if (below + 1 == values.end()) return *below;
  const double fraction = at - std::floor(at);
  return *below + fraction * (*std::min_element(below + 1, values.end()) - *below);
}

}  // namespace stageline
