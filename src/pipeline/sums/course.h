// Course: how a value that is measured once a step goes over the steps. It is the same in all of them, higher from one
// step on, rising (or falling) with every step, higher in every n-th step, or higher in some steps.
//
//   1.00 1.01 0.99 1.00 1.31 1.30 1.29 1.30     kOnset, from the fifth value on: 1.00 before, 1.30 after
//
// Each shape is fitted by least squares. It is accepted if it leaves less than half of the variance about the mean, and
// an F test finds that noise would not fit as well. For "some steps" it must leave less than a tenth, since any values
// can be split into high and low ones. The accepted shape that leaves least is taken; "some steps" is taken only if no
// other was accepted, or if it leaves less than a tenth of what the other leaves.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

enum class CourseKind : uint8_t { kConstant, kOnset, kTrend, kEvery, kSome };

struct Course {
  CourseKind kind = CourseKind::kConstant;
  size_t from = 0;            // kOnset: the first value of the new level; kEvery: the first high value
  size_t every = 0;           // kEvery only: the period, 2, 3, …
  size_t high_count = 0;      // kOnset, kEvery and kSome: how many values are high
  double low = 0, high = 0;   // the two levels; for kTrend the first and the last value of the line
  double noise = 0;           // standard deviation of the values about the shape
  std::vector<double> level;  // how the shape explains each value; it has as many entries as the values
  bool varies() const { return kind != CourseKind::kConstant; }
};

// A lower level of at most this share of the higher one counts as next to nothing. Example: waits of 2 ms in four steps
// and 10 ms in every fifth are waits of the fifth.
inline constexpr double kNextToNothing = 0.25;

// `values` has one value per step, in order of steps; NaN is an unknown value. Fewer than six known values are
// kConstant. O(n²).
Course course_of(std::span<const double> values);

}  // namespace stageline
