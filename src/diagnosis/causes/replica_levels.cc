#include "diagnosis/causes/replica_levels.h"

namespace stageline {

ReplicaLevels levels_of(const CauseScene& scene, const Ratios& values) {
  ReplicaLevels levels;
  std::map<int32_t, std::vector<double>> count;
  for (size_t w = 0; w < values.size(); ++w) {
    const int32_t dp = scene.times.workers()[w].dp;
    auto& sum = levels.by_step.try_emplace(dp, values[w].size(), 0.0).first->second;
    auto& n = count.try_emplace(dp, values[w].size(), 0.0).first->second;
    for (size_t s = 0; s < values[w].size(); ++s)
      if (!std::isnan(values[w][s])) sum[s] += values[w][s], ++n[s];
  }
  for (auto& [dp, sum] : levels.by_step)
    for (size_t s = 0; s < sum.size(); ++s) sum[s] = count[dp][s] > 0 ? sum[s] / count[dp][s] : std::nan("");
  return levels;
}

}  // namespace stageline
