// Replays of the recorded steps without some causes, and what they gain. Part of causes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "diagnosis/causes/cause_drafts.h"
#include "pipeline/replay/step_replay.h"

namespace stageline {

// Replays the steps without some of the suspected causes.
class CauseWorlds {
 public:
  explicit CauseWorlds(const CauseScene& scene) : scene_(scene), launch_ns_(launch_delays(scene.graph)) {}

  // The operation's times without all of `changes`, applied in order.
  void operation(uint32_t op, std::span<const CauseWorld* const> changes, double& dur, double& delay) const {
    const StepGraph& g = scene_.graph;
    dur = g.dur_ns[op];
    delay = is_compute(g.kind[op]) ? g.delay_ns[op] : std::min(g.delay_ns[op], launch_ns_[g.type[op]]);
    for (const CauseWorld* change : changes) (*change)(op, dur, delay);
  }
  WorldTimes replay(const std::vector<std::vector<const CauseWorld*>>& worlds) const;

 private:
  const CauseScene& scene_;
  std::vector<double> launch_ns_;
};

// How much shorter each counted step is in world `to` than in world `from`.
std::vector<double> gains_of(const WorldTimes& times, size_t from, size_t to, const std::vector<bool>& counts);

// The standard error of the mean of values; NaN for one value.
double standard_error(const std::vector<double>& values);

}  // namespace stageline
