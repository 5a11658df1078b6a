// The times of whole replicas, step by step. Part of slow ranks.
#pragma once

#include "diagnosis/causes/suspect.h"

namespace stageline {

// Minimum share of the slower one's excess that another must have so that both are slow together.
inline constexpr double kAlikeSlow = 0.75;

// [worker][step of the graph]: its time, relative to what its places usually take or to the median of its peers; NaN:
// unknown.
using Ratios = std::vector<std::vector<double>>;

// Levels of whole replicas, as means over their workers: where data are uneven, single workers scatter too much.
struct ReplicaLevels {
  std::map<int32_t, std::vector<double>> by_step;  // for each replica; NaN: unknown
  double mean(int32_t dp) const { return mean_of(known_ratios(by_step.at(dp))); }
  double error(int32_t dp) const {
    const std::vector<double> values = known_ratios(by_step.at(dp));
    return sample_std(values) / std::sqrt(values.size());
  }
};
ReplicaLevels levels_of(const CauseScene& scene, const Ratios& values);

// Returns whether a run has few enough workers × steps for a ratio of each.
inline bool levels_are_affordable(const CauseScene& scene) {
  constexpr size_t kMaxRatios = 10'000'000;
  return scene.times.workers().size() * scene.graph.steps.size() <= kMaxRatios;
}

}  // namespace stageline
