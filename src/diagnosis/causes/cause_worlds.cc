#include "diagnosis/causes/cause_worlds.h"

#include <algorithm>
#include <cmath>

#include "model/statistics.h"

namespace stageline {

WorldTimes CauseWorlds::replay(const std::vector<std::vector<const CauseWorld*>>& worlds) const {
  return replay_worlds(scene_.graph, worlds.size(),
                       [&](uint32_t op, size_t first, std::span<double> dur, std::span<double> delay) {
                         for (size_t i = 0; i < dur.size(); ++i) operation(op, worlds[first + i], dur[i], delay[i]);
                       });
}

std::vector<double> gains_of(const WorldTimes& times, size_t from, size_t to, const std::vector<bool>& counts) {
  std::vector<double> gains;
  for (size_t s = 0; s < counts.size(); ++s)
    if (counts[s]) gains.push_back(times.ns(s, from) - times.ns(s, to));
  return gains;
}

double standard_error(const std::vector<double>& values) {
  return sample_std(values) / std::sqrt(static_cast<double>(values.size()));
}

}  // namespace stageline
