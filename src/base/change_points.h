// Where the level of a series changes: E-divisive (Matteson and James, "A nonparametric approach for multiple change
// point analysis of multivariate data", JASA 2014), the method that MongoDB's and others' performance tests use.
//
// The split of a stretch that parts its values most is kept when fewer than `significance` of the stretch's random
// orders part as much; then each side is searched. A series without a change is cut with that probability and no more.
#pragma once

#include <cstddef>
#include <vector>

namespace stageline {

struct ChangePoint {
  size_t at = 0;                 // the first value after the change
  double before = 0, after = 0;  // medians of the stretches beside it
  double p = 1;                  // share of random orders that part as much, the real one counted
};

struct ChangeOptions {
  double significance = 0.005;
  size_t permutations = 999;
  size_t least = 4;  // values on each side
};

// In order. The same series gives the same answer. O(n² · permutations) a stretch.
std::vector<ChangePoint> change_points(const std::vector<double>& series, const ChangeOptions& options = {});

}  // namespace stageline
