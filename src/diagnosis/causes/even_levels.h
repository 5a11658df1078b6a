// Estimates the times of cells if randomly varying work were distributed evenly. It is part of causes.
#pragma once

#include <cstddef>
#include <vector>

namespace stageline {

// The work of a place of the pipeline (a stage's chunk) in one replica: the mean of its micro-batches and their number.
struct WorkLevel {
  double mean = 0;
  double count = 0;  // 0: unknown
};

// Each micro-batch's work scatters by `deviation` (relative standard deviation), so by chance alone the mean of a few
// of them is off by deviation ÷ √count. Returns, for each [place][replica], what even work takes ÷ `mean`.
//
// A level is modelled as place × replica × rest. Each of the three is drawn towards what all have in common, as far as
// noise explains its scatter. This is the positive-part James-Stein estimator: with a true variance τ² and a noise
// variance e² the part τ² ÷ (τ² + e²) is kept. A stage with more layers, a slow replica and a slow rank keep their
// times, and stages that differ only by noise become equal. `shared`: all replicas of a place have the same work at the
// same time, so more of them do not add evidence. O(places · replicas).
std::vector<std::vector<double>> even_levels(const std::vector<std::vector<WorkLevel>>& work, double deviation,
                                             bool shared);

// Mean and standard deviation of the largest of `count` independent standard normal values.
struct Largest {
  double mean = 0, deviation = 1;
};
Largest largest_of_normals(size_t count);

}  // namespace stageline
