// Causes in what compute takes: stages, or single chunks, that are slow beside the others.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "pipeline/cause_drafts.h"

namespace stageline {
namespace {

constexpr double kSlowKind = 1.03;        // of one kind of cell of a slow stage, to be named
constexpr double kMostOfStage = 2.0 / 3;  // of what a stage takes beyond the others, that one chunk of it holds
constexpr int64_t kLeastSlowSteps = 3;    // it is slow in one step of so many, or in more

// By place (stage, chunk, kind): its mean, how many cells, what others of the kind take, what all take when even.
struct PlaceTimes {
  std::vector<double> mean, count, others, even;
};

PlaceTimes place_times(const CauseScene& scene) {
  PlaceTimes t;
  t.mean = scene.times.place_means();
  t.count.resize(t.mean.size());
  t.others = t.even = std::vector<double>(t.mean.size(), std::nan(""));
  scene.each_op([&](uint32_t op, size_t) {
    if (scene.times.worker_of(op) != CellTimes::kNone) ++t.count[scene.times.place_of(op)];
  });
  // Others of one (chunk, kind) are those of all chunks: the first and the last chunk hold what only they have.
  for (size_t kind = 0; kind < CellTimes::kKinds; ++kind) {
    std::vector<std::pair<double, size_t>> all;
    for (size_t p = kind; p < t.mean.size(); p += CellTimes::kKinds)
      if (!std::isnan(t.mean[p])) all.emplace_back(t.mean[p], p);
    if (all.size() < 2) continue;
    std::sort(all.begin(), all.end());
    std::vector<double> sorted;
    double sum = 0, n = 0;
    for (const auto& [mean, p] : all) sorted.push_back(mean), sum += mean * t.count[p], n += t.count[p];
    for (size_t i = 0; i < all.size(); ++i) {
      t.others[all[i].second] = median_of_others(sorted, i);
      t.even[all[i].second] = sum / n;
    }
  }
  return t;
}

// Steps in which the cells of the stage, or of one chunk of it, take at least kSlowCause times the others', and all.
std::pair<int64_t, int64_t> slow_steps(const CauseScene& scene, const Cause& cause, const std::vector<double>& others) {
  int64_t slow = 0, all = 0;
  for (size_t s = 0; s < scene.graph.steps.size(); ++s) {
    if (!scene.counts[s]) continue;
    double own = 0, theirs = 0;
    for (uint32_t op = scene.graph.steps[s].begin; op < scene.graph.steps[s].end; ++op) {
      if (scene.times.worker_of(op) == CellTimes::kNone || scene.graph.stage[op] != cause.stage) continue;
      if (cause.chunk != kUnknown && scene.graph.chunk[op] != cause.chunk) continue;
      const double other = others[scene.times.place_of(op)];
      if (std::isnan(other)) continue;
      own += scene.times.time_ns(op);
      theirs += other;
    }
    all += theirs > 0;
    slow += theirs > 0 && own >= kSlowCause * theirs;
  }
  return {slow, all};
}

// The stage as a cause, its time beyond the others' in `beyond_ns`; false where it is not slow.
bool is_slow(const CauseScene& scene, const PlaceTimes& t, int32_t stage, Cause& cause, double& beyond_ns) {
  double own = 0, theirs = 0, chunk_ratio = 0, chunk_beyond = 0;
  int32_t slow_chunks = 0, slowest = kUnknown;
  using Kinds = std::map<size_t, std::array<double, 3>>;  // own and others' time, and cells
  Kinds kinds, of_slowest;
  for (int32_t chunk = 0; chunk < scene.times.chunks(); ++chunk) {
    double of_chunk = 0, of_others = 0;
    Kinds here;
    for (size_t kind = 0; kind < CellTimes::kKinds; ++kind) {
      const size_t p = scene.times.place(stage, chunk, static_cast<CellKind>(kind));
      if (std::isnan(t.mean[p]) || std::isnan(t.others[p])) continue;
      of_chunk += t.mean[p] * t.count[p];
      of_others += t.others[p] * t.count[p];
      for (Kinds* to : {&kinds, &here}) {
        auto& [a, b, n] = (*to)[kind];
        a += t.mean[p] * t.count[p], b += t.others[p] * t.count[p], n += t.count[p];
      }
    }
    own += of_chunk, theirs += of_others;
    if (of_chunk < kSlowCause * of_others || !(of_others > 0)) continue;
    ++slow_chunks;
    if (of_chunk - of_others <= chunk_beyond) continue;
    slowest = chunk;
    chunk_beyond = of_chunk - of_others;
    chunk_ratio = of_chunk / of_others;
    of_slowest = std::move(here);
  }
  // A chunk of its own may be heavy (embedding, head) in a stage that is not.
  const bool whole = theirs > 0 && own >= kSlowCause * theirs;
  if (!whole && slow_chunks == 0) return false;
  cause.kind = CauseKind::kSlowStage;
  cause.stage = stage;
  cause.ratio = own / theirs;
  // Embedding and head are one chunk's: the others of the stage may be a little slow beside it.
  if (scene.times.chunks() > 1 && slowest != kUnknown &&
      (slow_chunks == 1 || chunk_beyond >= kMostOfStage * (own - theirs))) {
    cause.chunk = slowest;
    cause.ratio = chunk_ratio;
    kinds = std::move(of_slowest);
  }
  for (const auto& [kind, sums] : kinds)
    if (sums[0] >= kSlowKind * sums[1])
      cause.times.push_back({static_cast<CellKind>(kind), sums[0] / sums[2], sums[1] / sums[2]});
  beyond_ns = own - theirs;
  std::tie(cause.slowest_in, cause.steps) = slow_steps(scene, cause, t.others);
  return cause.slowest_in * kLeastSlowSteps >= cause.steps;
}

}  // namespace

// A stage against the others, kind by kind; with chunks, chunk by chunk.
void draft_slow_stages(const CauseScene& scene, std::vector<CauseDraft>& out) {
  if (scene.times.stages() < 2) return;
  const PlaceTimes t = place_times(scene);
  const auto to_others = std::make_shared<std::vector<double>>(t.mean.size(), 1.0);
  const auto to_even = std::make_shared<std::vector<double>>(t.mean.size(), 1.0);
  for (size_t p = 0; p < t.mean.size(); ++p) {
    if (t.mean[p] > 0 && t.others[p] < t.mean[p]) (*to_others)[p] = t.others[p] / t.mean[p];
    if (t.mean[p] > 0 && t.even[p] > 0) (*to_even)[p] = t.even[p] / t.mean[p];
  }
  std::vector<std::pair<double, CauseDraft>> slow;  // by what they take beyond the others
  for (int32_t stage = 0; stage < scene.times.stages(); ++stage) {
    CauseDraft draft;
    double beyond_ns = 0;
    if (!is_slow(scene, t, stage, draft.cause, beyond_ns)) continue;
    draft.without = [&scene, stage, to_others](uint32_t op, double& dur, double&) {
      if (scene.times.worker_of(op) != CellTimes::kNone && scene.graph.stage[op] == stage)
        dur *= (*to_others)[scene.times.place_of(op)];
    };
    // Of part of a run nobody knows what even would be.
    if (scene.coverage.whole())
      draft.evened = [&scene, to_even](uint32_t op, double& dur, double&) {
        if (scene.times.worker_of(op) != CellTimes::kNone) dur *= (*to_even)[scene.times.place_of(op)];
      };
    slow.emplace_back(beyond_ns, std::move(draft));
  }
  std::stable_sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (slow.size() > kMostWorkerCauses) slow.resize(kMostWorkerCauses);
  for (auto& [beyond_ns, draft] : slow) out.push_back(std::move(draft));
}

}  // namespace stageline
