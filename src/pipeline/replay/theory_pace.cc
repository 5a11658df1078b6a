#include "pipeline/replay/theory_pace.h"

#include <algorithm>
#include <cmath>

namespace stageline {

void StagePace::add(int64_t actual_ns, int64_t mean_ns) {
  const double a = actual_ns, m = mean_ns;
  ++count;
  actual += a;
  mean += m;
  actual_squares += a * a;
  products += a * m;
  mean_squares += m * m;
}

double StagePace::pace() const { return mean > 0 && actual > 0 ? actual / mean : 1; }

bool StagePace::sure() const {
  constexpr double kMinCells = 4;
  if (count < kMinCells || !(mean > 0)) return false;
  // Computes the sum of squares of the residuals actual − pace · mean, and from it the standard error of the pace.
  const double p = pace(), squares = std::max(0.0, actual_squares - 2 * p * products + p * p * mean_squares);
  const double error = std::sqrt(squares * count / (count - 1)) / mean;
  return std::abs(p - 1) >= kMinPace && std::abs(p - 1) >= kSurePace * error;
}

}  // namespace stageline
