// Computes how fast the stages of one step were, compared with their means over the run.
//
// In a run whose steps differ (in sequence lengths, or through clocks that throttle), every cell of a slow step would
// be late although its order is right. So if a stage's cells differ from the means by more than their own scatter, that
// step's theory takes every stage at its own pace. The pace is the sum of its cells ÷ the sum of their means.
#pragma once

#include <cstdint>

namespace stageline {

struct StagePace {
  // Adds one cell that has a place in the theory.
  void add(int64_t actual_ns, int64_t mean_ns);
  double pace() const;  // 1 when no cell was added
  // Returns true when the pace differs from 1 by at least kMinPace and by kSurePace times its own standard error, from
  // four cells or more.
  bool sure() const;

  double count = 0, actual = 0, mean = 0;
  double actual_squares = 0, products = 0, mean_squares = 0;
};

inline constexpr double kMinPace = 0.02;
inline constexpr double kSurePace = 4;

}  // namespace stageline
