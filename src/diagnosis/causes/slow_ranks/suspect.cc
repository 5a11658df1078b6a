// Replicas that all differ; ranks that are slow by the same factor are found among slow ranks.
#include "diagnosis/causes/suspect.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "diagnosis/causes/replica_levels.h"
#include "diagnosis/causes/slow_ranks/slow_ranks.h"
#include "model/statistics.h"

namespace stageline {

extern const CauseKind slow_ranks_cause;

namespace {

// Suspects replicas that all differ: no half of them are alike, so none is the usual one, and stages agree on which are
// slower. All except the fastest are one cause, priced against the fastest; they are divided out of scene.times.
void suspect_graded_replicas(CauseScene& scene, std::vector<Suspect>& out) {
  if (!levels_are_affordable(scene)) return;
  constexpr double kErrors = 3;  // standard errors within which two replicas' means may be equal
  const Ratios loads = scene.times.worker_loads();
  const ReplicaLevels levels = levels_of(scene, loads);
  const size_t replicas = levels.by_step.size();
  if (replicas < 3) return;
  int32_t fastest = levels.by_step.begin()->first, slowest = fastest;
  size_t max_alike = 0;
  for (const auto& [own, values] : levels.by_step) {
    if (known_ratios(values).size() < 2) return;
    if (levels.mean(own) < levels.mean(fastest)) fastest = own;
    if (levels.mean(own) > levels.mean(slowest)) slowest = own;
    size_t alike = 0;
    for (const auto& [other, theirs] : levels.by_step) {
      const double mine = levels.mean(own), its = levels.mean(other);
      alike += std::abs(mine - its) < std::max((kSlowCause - 1) * std::min(mine, its),
                                               kErrors * std::hypot(levels.error(own), levels.error(other)));
    }
    max_alike = std::max(max_alike, alike);
  }
  if (2 * max_alike > replicas) return;
  std::vector<double> ratios;  // of the slowest replica to the fastest, by step
  for (size_t s = 0; s < scene.graph.steps.size(); ++s) {
    const double ratio = levels.by_step.at(slowest)[s] / levels.by_step.at(fastest)[s];
    if (!std::isnan(ratio)) ratios.push_back(ratio);
  }
  if (!certainly_slow(ratios) || course_of(ratios).varies()) return;
  std::map<int32_t, std::vector<size_t>> by_stage;
  for (size_t w = 0; w < loads.size(); ++w) by_stage[scene.times.workers()[w].stage].push_back(w);
  const auto to_fastest = std::make_shared<std::vector<double>>(loads.size(), 1.0);
  const auto to_median = std::make_shared<std::vector<double>>(loads.size(), 1.0);
  std::vector<double> means;
  for (const auto& [dp, values] : levels.by_step) means.push_back(levels.mean(dp));
  const double median = median_of(means);
  std::map<int32_t, std::vector<int32_t>> ranks;  // by replica
  for (const auto& [stage, workers] : by_stage) {
    double best = 0;
    for (const size_t w : workers)
      if (scene.times.workers()[w].dp == fastest) best = mean_of(known_ratios(loads[w]));
    if (!(best > 0)) return;
    for (const size_t w : workers) {
      const int32_t dp = scene.times.workers()[w].dp;
      const double own = mean_of(known_ratios(loads[w])), beyond = levels.mean(dp) / levels.mean(fastest) - 1;
      if (dp == fastest) continue;
      // One slow rank does not make a slow replica.
      if (!(own / best - 1 >= kAlikeSlow / 2 * beyond)) return;
      (*to_fastest)[w] = own / best;
      (*to_median)[w] = std::max(1.0, levels.mean(dp) / median);
      ranks[dp].push_back(scene.trace.parts[scene.times.workers()[w].part].rank);
    }
  }
  Suspect suspect;
  suspect.cause.kind = &slow_ranks_cause;
  for (auto& [dp, own] : ranks) {
    std::sort(own.begin(), own.end());
    suspect.cause.places.push_back({.kind = PlaceKind::kReplicas, .ranks = std::move(own), .replica = dp});
  }
  // The slowest replica comes first.
  std::stable_partition(suspect.cause.places.begin(), suspect.cause.places.end(),
                        [&](const Place& place) { return place.replica == slowest; });
  suspect.cause.own = SlowRanksOwn{.fastest = fastest};
  suspect.cause.figures.ratio = levels.mean(slowest) / levels.mean(fastest);
  suspect.cause.in_steps = {std::count_if(ratios.begin(), ratios.end(), [](double r) { return r >= kSlowCause; }),
                            std::ssize(ratios)};
  suspect.cause.certain = true;
  const auto by = [&scene](std::shared_ptr<std::vector<double>> factors) {
    return [&scene, factors](uint32_t op, double& dur, double&) {
      if (const uint32_t w = scene.times.worker_of(op); w != CellTimes::kNone) dur /= (*factors)[w];
    };
  };
  suspect.without = by(to_fastest);
  suspect.otherwise = by(to_median);
  out.push_back(std::move(suspect));
  for (size_t w = 0; w < loads.size(); ++w) scene.times.even_out(w, (*to_fastest)[w]);
}

constexpr std::string_view kLines[] = {"replica-jitter"};

}  // namespace

const CauseKind slow_ranks_cause = {.id = "slow_ranks",
                                    .name = "slow ranks together",
                                    .takes_from = kLines,
                                    .of_work = true,
                                    .suspect = suspect_graded_replicas,
                                    .tell = tell_slow_ranks};

}  // namespace stageline
