// The shape in time of something that is measured once a step: the same in all of them, slower from a step on, slower
// with every step, in every n-th one, or now and then.
//
//   1.00 1.01 0.99 1.00 1.31 1.30 1.29 1.30     kOnset, from the fifth value on: 1.00 before, 1.30 after
//
// Shapes are fits by least squares. One is taken where it leaves less than half of the variance that the mean leaves,
// and more than chance would by an F test; of several the one with least left, onsets and trends before patterns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stageline {

enum class CourseKind : uint8_t { kConstant, kOnset, kTrend, kEvery, kSome };

struct Course {
  CourseKind kind = CourseKind::kConstant;
  size_t from = 0;            // of an onset: the first value of the new level; of kEvery: the first of the high ones
  size_t every = 0;           // of kEvery: 2, 3, …
  size_t high_count = 0;      // of kOnset, kEvery, kSome
  double low = 0, high = 0;   // levels; of a trend its first and its last value
  double noise = 0;           // standard deviation of what the shape leaves
  std::vector<double> level;  // by value: what the shape says it is
  bool varies() const { return kind != CourseKind::kConstant; }
};

// Of a higher level, what a lower one is at most that is next to nothing beside it.
inline constexpr double kNextToNothing = 0.25;

// `values` one a step, in order; NaN: unknown. Fewer than six known ones are kConstant. O(n²).
Course course_of(std::span<const double> values);

}  // namespace stageline
