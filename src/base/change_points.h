// Finds where the level of a series changes, by E-divisive, which the performance tests of MongoDB and others use.
// Source: Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate data", JASA
// 2014.
//
// In each stretch of the series, the method takes the split that separates the values most. It compares this split with
// the best splits of random orders of the same values. The split is kept when fewer than `significance` of the random
// orders separate as much; then each side is searched in the same way. So a series without a change is split with at
// most that probability.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct ChangePoint {
  size_t at = 0;                 // the first value after the change
  double before = 0, after = 0;  // medians of the stretches before and after the change
  double p = 1;                  // share of orders that separate as much, the real order included
};

struct ChangeOptions {
  double significance = 0.005;
  size_t permutations = 999;
  size_t min = 4;  // minimum number of values on each side of a split
};

// Returns the changes in the order of the series. The same series gives the same answer. O(n² · permutations) for each
// stretch.
std::vector<ChangePoint> change_points(const std::vector<double>& series, const ChangeOptions& options = {});

// The minimum number of values for detecting a change. With fewer values, random orders separate as well as a clean cut
// in the middle does too often: for 10 values, 2 of 252.
size_t fewest_values(const ChangeOptions& options = {});

}  // namespace stageline
