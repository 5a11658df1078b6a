// How fast the stages of one step were, against their means over the run.
//
// A run whose steps differ (sequence lengths, clocks that throttle) would have every cell of a slow step late, though
// its order is right. So where a stage's cells of a step differ from the means by more than their own scatter explains,
// that step's theory takes every stage at its own pace: sum of its cells ÷ sum of their means.
#pragma once

#include <cstdint>

namespace stageline {

struct StagePace {
  // One cell with a place in theory.
  void add(int64_t actual_ns, int64_t mean_ns);
  double pace() const;  // 1 without cells
  // The difference from 1 is at least kLeastPace, and kSurePace times its own standard error; of four cells or more.
  bool sure() const;

  double count = 0, actual = 0, mean = 0;
  double actual_squares = 0, products = 0, mean_squares = 0;
};

inline constexpr double kLeastPace = 0.02;
inline constexpr double kSurePace = 4;

}  // namespace stageline
