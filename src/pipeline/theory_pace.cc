#include "pipeline/theory_pace.h"

#include <algorithm>
#include <cmath>

namespace stageline {

void StagePace::add(int64_t actual_ns, int64_t mean_ns) {
  const auto a = static_cast<double>(actual_ns), m = static_cast<double>(mean_ns);
  ++count;
  actual += a;
  mean += m;
  actual_squares += a * a;
  products += a * m;
  mean_squares += m * m;
}

double StagePace::pace() const {
  constexpr double kLeastCells = 4;
  if (count < kLeastCells || !(mean > 0) || !(actual > 0)) return 1;
  const double pace = actual / mean;
  // Of the residuals actual − pace · mean: their sum of squares, and what it says of the sum's error.
  const double squares = std::max(0.0, actual_squares - 2 * pace * products + pace * pace * mean_squares);
  const double error = std::sqrt(squares * count / (count - 1)) / mean;
  return std::abs(pace - 1) >= kLeastPace && std::abs(pace - 1) >= kSurePace * error ? pace : 1;
}

}  // namespace stageline
