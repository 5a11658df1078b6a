// What cells would take if work that varies by chance were dealt evenly. Part of causes.
#pragma once

#include <cstddef>
#include <vector>

namespace stageline {

// The work of a place of the pipeline (a stage's chunk) in each replica: mean of its micro-batches, and how many.
struct WorkLevel {
  double mean = 0;
  double count = 0;  // 0: nothing known
};

// Where each micro-batch's work scatters by `deviation` (relative standard deviation), the mean of a few of them is
// off by deviation ÷ √count for no other reason. Returns, by [place][replica], what even work takes ÷ `mean`.
//
// Levels are place × replica × the rest. Each of the three is drawn towards what all have in common as far as chance
// explains how it scatters (the positive-part James-Stein estimator: of a true variance τ² and a chance variance e² the
// part τ² ÷ (τ² + e²) is kept): a stage with more layers, a slow replica and a slow rank keep what they take, and
// stages that are alike become so. `shared`: all replicas of a place have the same work at the same time, so that more
// of them tell no more of it. O(places · replicas).
std::vector<std::vector<double>> even_levels(const std::vector<std::vector<WorkLevel>>& work, double deviation,
                                             bool shared);

// Mean and standard deviation of the largest of `count` independent standard normal values.
struct Largest {
  double mean = 0, deviation = 1;
};
Largest largest_of_normals(size_t count);

}  // namespace stageline
