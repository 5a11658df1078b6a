// Causes in what compute takes: sequences that are long on every stage, and ranks that are slow beside their peers.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>

#include "model/statistics.h"
#include "pipeline/beyond_noise.h"
#include "pipeline/cause_drafts.h"

namespace stageline {
namespace {

constexpr size_t kMostCells = 10'000'000;  // workers times steps

}  // namespace

void draft_sequences(const CauseScene& scene, std::vector<CauseDraft>& out) {
  const CellTimes::Sequences& all = scene.times.sequences();
  if (!scene.times.sequence_factor_known()) return;
  CauseDraft draft;
  draft.cause.kind = CauseKind::kLongSequences;
  draft.cause.ratio = all.long_factor;
  draft.cause.count = all.long_ones;
  draft.cause.of = all.all;
  draft.without = [&scene](uint32_t op, double& dur, double&) { dur /= scene.times.long_factor(op); };
  draft.evened = [&scene](uint32_t op, double& dur, double&) { dur *= scene.times.even_factor(op); };
  out.push_back(std::move(draft));
}

namespace {

constexpr double kScatters = 5;          // of ratios between workers alike, beyond which a step of one is slow
constexpr double kQuarter = 0.3186;      // standard deviations that a quarter of all normal values are within
constexpr int64_t kLeastSlowSteps = 3;   // fewer are an outlier each
constexpr double kMostSlowSteps = 0.75;  // of all: more, and it is slow all the time

using Ratios = std::vector<std::vector<double>>;  // by worker and step of the graph: to its peers' median; NaN: unknown

struct Slow {
  size_t worker = 0;
  double ratio = 1, mean = 1;  // of the steps in which it is slow; of all
  int64_t slow_in = 0, steps = 0;
  bool certain = false, sometimes = false;
};

Ratios ratios_to_peers(const CauseScene& scene, const std::map<int32_t, std::vector<size_t>>& by_stage) {
  const auto loads = scene.times.worker_loads();
  Ratios ratios(loads.size(), std::vector<double>(scene.graph.steps.size(), std::nan("")));
  for (const auto& [stage, workers] : by_stage)
    for (size_t s = 0; s < scene.graph.steps.size(); ++s) {
      if (!scene.counts[s]) continue;
      std::vector<double> sorted;
      for (const size_t w : workers)
        if (!std::isnan(loads[w][s])) sorted.push_back(loads[w][s]);
      if (sorted.size() < 2) continue;
      std::sort(sorted.begin(), sorted.end());
      for (const size_t w : workers) {
        if (std::isnan(loads[w][s])) continue;
        const auto own =
            static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), loads[w][s]) - sorted.begin());
        const double others = median_of_others(sorted, own);
        if (others > 0) ratios[w][s] = loads[w][s] / others;
      }
    }
  return ratios;
}

std::vector<double> known(const std::vector<double>& ratios) {
  std::vector<double> values;
  std::copy_if(ratios.begin(), ratios.end(), std::back_inserter(values), [](double r) { return !std::isnan(r); });
  return values;
}

// What a ratio is above 1 by in a slow step: more than those of the stage's workers scatter by. The quarter that is
// nearest to 1 tells how much that is, whoever is slow in how many steps.
double slow_beyond(const Ratios& ratios, const std::vector<size_t>& workers) {
  std::vector<double> off;
  for (const size_t w : workers)
    for (const double r : ratios[w])
      if (!std::isnan(r)) off.push_back(std::abs(r - 1));
  if (off.empty()) return kSlowCause - 1;
  const auto quarter = off.begin() + static_cast<std::ptrdiff_t>(off.size() / 4);
  std::nth_element(off.begin(), quarter, off.end());
  return std::max(kSlowCause - 1, kScatters * *quarter / kQuarter);
}

// Workers of a replica that are slower than their peers, by step of the graph.
using SlowOnes = std::map<int32_t, std::vector<int32_t>>;

bool rather_slow(double ratio) { return ratio - 1 >= (kSlowCause - 1) / 2; }

SlowOnes slow_ones(const CauseScene& scene, const Ratios& ratios) {
  SlowOnes ones;
  for (size_t w = 0; w < ratios.size(); ++w) {
    std::vector<int32_t>& of_replica = ones.try_emplace(scene.times.workers()[w].dp, ratios[w].size(), 0).first->second;
    for (size_t s = 0; s < ratios[w].size(); ++s) of_replica[s] += rather_slow(ratios[w][s]);
  }
  return ones;
}

// Slow in some steps, as a device is that gets hot. Where the replica's other stages are slow in these too, it is its
// micro-batches.
Slow slow_sometimes(const std::vector<double>& ratios, const std::vector<int32_t>& slow_ones, size_t worker,
                    double beyond) {
  Slow slow{.worker = worker, .ratio = 0, .mean = mean_of(known(ratios)), .certain = true, .sometimes = true};
  int64_t shared = 0;
  for (size_t s = 0; s < ratios.size(); ++s) {
    if (std::isnan(ratios[s])) continue;
    ++slow.steps;
    if (ratios[s] - 1 < beyond) continue;
    ++slow.slow_in;
    slow.ratio += ratios[s];
    shared += slow_ones[s] > 1;  // it is one of them
  }
  slow.ratio /= static_cast<double>(std::max<int64_t>(slow.slow_in, 1));
  if (2 * shared > slow.slow_in) slow.slow_in = 0;
  return slow;
}

}  // namespace

// A worker against the same stage's other replicas.
void draft_slow_workers(CauseScene& scene, std::vector<CauseDraft>& out) {
  if (scene.times.workers().size() * scene.graph.steps.size() > kMostCells) return;
  std::map<int32_t, std::vector<size_t>> by_stage;
  for (size_t w = 0; w < scene.times.workers().size(); ++w) by_stage[scene.times.workers()[w].stage].push_back(w);
  const auto ratios = std::make_shared<const Ratios>(ratios_to_peers(scene, by_stage));
  const SlowOnes ones = slow_ones(scene, *ratios);
  std::vector<Slow> slow;
  for (const auto& [stage, workers] : by_stage) {
    if (workers.size() < 2) continue;
    const double beyond = slow_beyond(*ratios, workers);
    for (const size_t w : workers) {
      const std::vector<double> values = known((*ratios)[w]);
      if (values.empty()) continue;
      const auto steps = static_cast<int64_t>(values.size());
      const Slow now_and_then = slow_sometimes((*ratios)[w], ones.at(scene.times.workers()[w].dp), w, beyond);
      if (now_and_then.slow_in >= kLeastSlowSteps &&
          static_cast<double>(now_and_then.slow_in) <= kMostSlowSteps * static_cast<double>(steps)) {
        slow.push_back(now_and_then);
        continue;
      }
      const double mean = mean_of(values);
      const double error = sample_std(values) / std::sqrt(static_cast<double>(steps));
      if (mean < kSlowCause || !beyond_noise(mean - 1, error, steps)) continue;
      slow.push_back({w, mean, mean,
                      std::count_if(values.begin(), values.end(), [](double v) { return v >= kSlowCause; }), steps,
                      certainly_slow(values)});
    }
  }
  std::stable_sort(slow.begin(), slow.end(), [](const Slow& a, const Slow& b) { return a.mean > b.mean; });
  if (slow.size() > kMostWorkerCauses) slow.resize(kMostWorkerCauses);
  for (const Slow& found : slow) {
    const CellTimes::Worker& worker = scene.times.workers()[found.worker];
    CauseDraft draft;
    draft.cause.kind = CauseKind::kSlowWorker;
    draft.cause.stage = worker.stage;
    draft.cause.dp = worker.dp;
    draft.cause.part = worker.part;
    draft.cause.ratio = found.ratio;
    draft.cause.slowest_in = found.slow_in;
    draft.cause.steps = found.steps;
    draft.cause.certain = found.certain;
    draft.cause.sometimes = found.sometimes;
    draft.without = [&scene, ratios, found](uint32_t op, double& dur, double&) {
      if (scene.times.worker_of(op) != found.worker) return;
      if (!found.sometimes) {
        dur /= found.ratio;
        return;
      }
      const auto& steps = scene.graph.steps;
      const auto step =
          std::partition_point(steps.begin(), steps.end(), [&](const GraphStep& s) { return s.end <= op; });
      const double ratio = (*ratios)[found.worker][static_cast<size_t>(step - steps.begin())];
      if (ratio >= kSlowCause) dur /= ratio;
    };
    out.push_back(std::move(draft));
  }
  for (const Slow& found : slow) scene.times.even_out(found.worker, found.mean);
}

}  // namespace stageline
