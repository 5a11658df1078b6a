// Causes in what compute takes: sequences that are long on every stage, and ranks that are slow beside their peers.
#include <algorithm>
#include <cmath>
#include <map>

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

// A worker against the same stage's other replicas.
void draft_slow_workers(CauseScene& scene, std::vector<CauseDraft>& out) {
  if (scene.times.workers().size() * scene.graph.steps.size() > kMostCells) return;
  const auto loads = scene.times.worker_loads();
  std::map<int32_t, std::vector<size_t>> by_stage;
  for (size_t w = 0; w < loads.size(); ++w) by_stage[scene.times.workers()[w].stage].push_back(w);
  struct Slow {
    size_t worker;
    double ratio;
    int64_t slow_in, steps;
    bool certain;
  };
  std::vector<Slow> slow;
  for (const auto& [stage, workers] : by_stage) {
    if (workers.size() < 2) continue;
    std::map<size_t, std::vector<double>> ratios;
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
        if (others > 0) ratios[w].push_back(loads[w][s] / others);
      }
    }
    for (const auto& [w, values] : ratios) {
      const double mean = mean_of(values);
      const double error = sample_std(values) / std::sqrt(static_cast<double>(values.size()));
      if (mean < kSlowCause || !beyond_noise(mean - 1, error, static_cast<int64_t>(values.size()))) continue;
      slow.push_back({w, mean, std::count_if(values.begin(), values.end(), [](double v) { return v >= kSlowCause; }),
                      static_cast<int64_t>(values.size()), certainly_slow(values)});
    }
  }
  std::stable_sort(slow.begin(), slow.end(), [](const Slow& a, const Slow& b) { return a.ratio > b.ratio; });
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
    draft.without = [&scene, w = static_cast<uint32_t>(found.worker), ratio = found.ratio](uint32_t op, double& dur,
                                                                                           double&) {
      if (scene.times.worker_of(op) == w) dur /= ratio;
    };
    out.push_back(std::move(draft));
  }
  for (const Slow& found : slow) scene.times.even_out(found.worker, found.ratio);
}

}  // namespace stageline
