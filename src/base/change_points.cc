#include "base/change_points.h"

#include <random>

namespace stageline {
namespace {

struct Split {
  size_t at = 0;
  double measure = -1;
};

// Returns the place in [first, last) where a split separates the values most. The measure is m n / (m + n) times (twice
// the mean distance across the split minus the mean distances within both sides). Sums of distances are updated from
// place to place.
Split best_split(const std::vector<double>& x, size_t first, size_t last, size_t min) {
  const size_t n = last - first;
  Split best;
  if (n < 2 * min) return best;
  double left = 0, across = 0, right = 0;  // sums over pairs
  for (size_t i = first; i < last; ++i)
    for (size_t k = i + 1; k < last; ++k) right += std::abs(x[i] - x[k]);
  for (size_t at = first + 1; at < last; ++at) {  // the value at − 1 moves from the right side to the left
    double to_left = 0, to_right = 0;
    for (size_t k = first; k < at - 1; ++k) to_left += std::abs(x[at - 1] - x[k]);
    for (size_t k = at; k < last; ++k) to_right += std::abs(x[at - 1] - x[k]);
    left += to_left;
    right -= to_right;
    across += to_right - to_left;
    const size_t m = at - first, r = last - at;
    if (m < min || r < min) continue;
    const double a = m, b = r;
    const double apart = 2 * across / (a * b) - 2 * left / (a * (a - 1)) - 2 * right / (b * (b - 1));
    const double measure = a * b / (a + b) * apart;
    if (measure > best.measure) best = {at, measure};
  }
  return best;
}

double median_between(const std::vector<double>& series, size_t first, size_t last) {
  std::vector<double> part(series.begin() + first, series.begin() + last);
  std::ranges::sort(part);
  const size_t n = part.size();
  return n == 0 ? 0 : n % 2 == 1 ? part[n / 2] : (part[n / 2 - 1] + part[n / 2]) / 2;
}

}  // namespace

std::vector<ChangePoint> change_points(const std::vector<double>& series, const ChangeOptions& options) {
  std::vector<ChangePoint> found;
  std::vector<std::pair<size_t, size_t>> open = {{0, series.size()}};
  std::mt19937_64 random(0x5747);
  const size_t min = std::max<size_t>(options.min, 2);
  while (!open.empty()) {
    const auto [first, last] = open.back();
    open.pop_back();
    const Split split = best_split(series, first, last, min);
    if (split.measure <= 0) continue;
    std::vector<double> shuffled(series.begin() + first, series.begin() + last);
    size_t as_much = 1;
    const auto max = static_cast<size_t>(options.significance * (options.permutations + 1));
    for (size_t k = 0; k < options.permutations && as_much <= max; ++k) {
      for (size_t i = shuffled.size() - 1; i > 0; --i) std::swap(shuffled[i], shuffled[random() % (i + 1)]);
      as_much += best_split(shuffled, 0, shuffled.size(), min).measure >= split.measure;
    }
    const double p = as_much / static_cast<double>(options.permutations + 1);
    if (as_much > max) continue;
    found.push_back({split.at, 0, 0, p});
    open.push_back({first, split.at});
    open.push_back({split.at, last});
  }
  std::ranges::sort(found, {}, &ChangePoint::at);
  for (size_t i = 0; i < found.size(); ++i) {
    found[i].before = median_between(series, i == 0 ? 0 : found[i - 1].at, found[i].at);
    found[i].after = median_between(series, found[i].at, i + 1 < found.size() ? found[i + 1].at : series.size());
  }
  return found;
}

size_t fewest_values(const ChangeOptions& options) {
  // Both halves of one order, and the two ways round, of all ways to choose them.
  for (size_t count = 2 * options.min;; ++count) {
    double ways = 1;
    for (size_t i = 0; i < count / 2; ++i) ways *= (count - i) / static_cast<double>(i + 1);
    if (1 / static_cast<double>(options.permutations + 1) + 2 / ways <= options.significance) return count;
  }
}

}  // namespace stageline
