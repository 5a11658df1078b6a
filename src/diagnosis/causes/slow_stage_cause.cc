// Causes in what compute takes: stages, or single chunks, that are slow beside the others.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>

#include "diagnosis/causes/cause_drafts.h"
#include "pipeline/measure/op_values.h"

namespace stageline {
namespace {

constexpr double kSlowKind = 1.03;        // of one kind of cell of a slow stage, to be named
constexpr double kSlowKindAlone = 1.1;    // of one kind of cell, where all of the stage's work is not slow
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
  const OpBlocks blocks(counted_ops(scene.graph, scene.counts), t.count.size());
  std::vector<double> of_block(blocks.size() * t.count.size());
  blocks.each([&](size_t b, uint32_t op) {
    if (scene.times.worker_of(op) != CellTimes::kNone) ++of_block[b * t.count.size() + scene.times.place_of(op)];
  });
  for (size_t i = 0; i < of_block.size(); ++i) t.count[i % t.count.size()] += of_block[i];
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

// What the cells of each stage and chunk take step by step of the graph, and what those of the other stages do on
// average.
class StageSteps {
 public:
  StageSteps(const CauseScene& scene, const std::vector<double>& others)
      : stages_(scene.times.stages()),
        chunks_(scene.times.chunks()),
        steps_(scene.graph.steps.size()),
        times_(static_cast<size_t>(stages_) * static_cast<size_t>(chunks_) * steps_) {
    scene.each_op([&](uint32_t op, size_t step) {
      if (scene.times.worker_of(op) == CellTimes::kNone || scene.times.left_out(op)) return;
      const double other = others[scene.times.place_of(op)];
      if (std::isnan(other)) return;
      Times& times = times_[at(scene.graph.stage(op), scene.graph.chunk[op], step)];
      times.own += scene.times.time_ns(op);
      times.theirs += other;
    });
    for (int32_t stage = 0; stage < stages_; ++stage) levels_.push_back(levels(stage));
  }

  // By step (NaN: it does not count), what the cells of the stage, or of one chunk of it, take to what the others' do
  // in that step: what all stages take longer in it is no stage's own.
  std::vector<double> ratios(int32_t stage, int32_t chunk) const {
    std::vector<double> ratios(steps_, std::nan("")), beside;
    for (size_t step = 0; step < steps_; ++step) {
      const Times times = of(stage, chunk, step);
      if (!(times.theirs > 0)) continue;
      beside.clear();  // levels of the other stages
      for (size_t other = 0; other < levels_.size(); ++other)
        if (static_cast<int32_t>(other) != stage && levels_[other][step] > 0) beside.push_back(levels_[other][step]);
      const auto middle = beside.begin() + static_cast<std::ptrdiff_t>(beside.empty() ? 0 : (beside.size() - 1) / 2);
      if (!beside.empty()) std::nth_element(beside.begin(), middle, beside.end());
      ratios[step] = times.own / times.theirs / (beside.empty() ? 1 : *middle);
    }
    return ratios;
  }

 private:
  struct Times {
    double own = 0, theirs = 0;
  };

  // Cells whose chunk nobody said count as the first one's, as in CellTimes::place().
  size_t at(int32_t stage, int32_t chunk, size_t step) const {
    const auto row = static_cast<size_t>(stage * chunks_ + std::max(chunk, 0));
    return row * steps_ + step;
  }

  // All chunks of the stage where none is named.
  Times of(int32_t stage, int32_t chunk, size_t step) const {
    if (chunk != kUnknown) return times_[at(stage, chunk, step)];
    Times sum;
    for (int32_t c = 0; c < chunks_; ++c) {
      sum.own += times_[at(stage, c, step)].own;
      sum.theirs += times_[at(stage, c, step)].theirs;
    }
    return sum;
  }

  // By step, how much longer than usual the stage takes then: to the lower quarter of its steps.
  std::vector<double> levels(int32_t stage) const {
    std::vector<double> level(steps_, std::nan("")), known;
    for (size_t step = 0; step < steps_; ++step)
      if (const Times times = of(stage, kUnknown, step); times.theirs > 0)
        known.push_back(level[step] = times.own / times.theirs);
    if (known.empty()) return level;
    const auto quarter = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 4);
    std::nth_element(known.begin(), quarter, known.end());
    for (double& value : level) value /= *quarter;
    return level;
  }

  int32_t stages_, chunks_;
  size_t steps_;
  std::vector<Times> times_;  // by stage, chunk and step
  std::vector<std::vector<double>> levels_;
};

std::vector<double> known_ratios(const std::vector<double>& by_step) {
  std::vector<double> ratios;
  std::copy_if(by_step.begin(), by_step.end(), std::back_inserter(ratios), [](double r) { return !std::isnan(r); });
  return ratios;
}

bool is_overlapped(size_t kind) { return kind == static_cast<size_t>(CellKind::kForwardBackward); }

// Whether some cell of the stage's chunk stands alone.
bool stands_alone(const CauseScene& scene, const PlaceTimes& t, int32_t stage, int32_t chunk) {
  for (size_t kind = 0; kind < CellTimes::kKinds; ++kind)
    if (!is_overlapped(kind) && !std::isnan(t.others[scene.times.place(stage, chunk, static_cast<CellKind>(kind))]))
      return true;
  return false;
}

// The stage as a cause, its time beyond the others' in `beyond_ns`; false where it is not slow.
bool is_slow(const CauseScene& scene, const PlaceTimes& t, const StageSteps& steps, int32_t stage, Cause& cause,
             double& beyond_ns) {
  double own = 0, theirs = 0, chunk_ratio = 0, chunk_beyond = 0;
  int32_t slow_chunks = 0, slowest = kUnknown;
  using Kinds = std::map<size_t, std::array<double, 3>>;  // own and others' time, and cells
  Kinds kinds, of_slowest;
  for (int32_t chunk = 0; chunk < scene.times.chunks(); ++chunk) {
    double of_chunk = 0, of_others = 0;
    Kinds in_chunk;
    // An overlapped pair is of two chunks: which of them is heavy only cells that stand alone can tell.
    const bool alone = stands_alone(scene, t, stage, chunk);
    for (size_t kind = 0; kind < CellTimes::kKinds; ++kind) {
      const size_t p = scene.times.place(stage, chunk, static_cast<CellKind>(kind));
      if (std::isnan(t.mean[p]) || std::isnan(t.others[p])) continue;
      own += t.mean[p] * t.count[p], theirs += t.others[p] * t.count[p];
      if (!alone || !is_overlapped(kind)) {
        of_chunk += t.mean[p] * t.count[p], of_others += t.others[p] * t.count[p];
        in_chunk[kind] = {t.mean[p] * t.count[p], t.others[p] * t.count[p], t.count[p]};
      }
      auto& [a, b, n] = kinds[kind];
      a += t.mean[p] * t.count[p], b += t.others[p] * t.count[p], n += t.count[p];
    }
    if (of_chunk < kSlowCause * of_others || !(of_others > 0)) continue;
    ++slow_chunks;
    if (of_chunk - of_others <= chunk_beyond) continue;
    slowest = chunk;
    chunk_beyond = of_chunk - of_others;
    chunk_ratio = of_chunk / of_others;
    of_slowest = std::move(in_chunk);
  }
  // A chunk of its own may be heavy (embedding, head) in a stage that is not.
  const bool whole = theirs > 0 && own >= kSlowCause * theirs;
  const bool one_kind = !whole && slow_chunks == 0 && std::any_of(kinds.begin(), kinds.end(), [](const auto& kind) {
    return kind.second[0] >= kSlowKindAlone * kind.second[1];
  }) && own > theirs;
  // On average it is not, and yet it may be in some steps.
  cause.sometimes =
      !whole && slow_chunks == 0 && !(one_kind && certainly_slow(known_ratios(steps.ratios(stage, kUnknown))));
  if (cause.sometimes && (!(theirs > 0) || !slow_course(course_of(steps.ratios(stage, kUnknown))))) return false;
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
    if (!cause.sometimes && sums[0] >= kSlowKind * sums[1])  // means of all steps say nothing of some
      cause.times.push_back({static_cast<CellKind>(kind), sums[0] / sums[2], sums[1] / sums[2]});
  cause.one_kind = cause.times.size() == 1 && kinds.size() > 1;
  beyond_ns = own - theirs;
  const std::vector<double> by_step = steps.ratios(stage, cause.chunk);
  cause.course = course_of(by_step);
  // Levels that hardly differ are no shape of a stage that is as slow in all steps.
  if (const auto [low, high] = std::minmax(cause.course.low, cause.course.high);
      high - low < kNextToNothing * (high - 1))
    cause.course = {};
  if (cause.sometimes) cause.ratio = std::max(cause.course.low, cause.course.high);
  const std::vector<double> ratios = known_ratios(by_step);
  cause.steps = static_cast<int64_t>(ratios.size());
  cause.slowest_in = std::count_if(ratios.begin(), ratios.end(), [](double r) { return r >= kSlowCause; });
  cause.certain = certainly_slow(ratios) || slow_course(cause.course);
  if (slow_course(cause.course)) return true;
  if (one_kind) return cause.certain;
  return cause.slowest_in * kLeastSlowSteps >= cause.steps;
}

struct Slow {
  double beyond_ns = 0;  // what it takes beyond the others
  Cause cause;
};

// Where micro-batches enter at both ends, stages s and p − 1 − s hold the same layers, each for one direction. Where
// both are slow it is these layers: taken from one of them alone, the other one would hold the step up as before.
void join_mirrors(int32_t stages, std::vector<Slow>& slow) {
  for (size_t i = 0; i < slow.size(); ++i)
    for (size_t j = i + 1; j < slow.size(); ++j) {
      Cause &own = slow[i].cause, &other = slow[j].cause;
      if (other.stage != stages - 1 - own.stage) continue;
      if (own.chunk != kUnknown && own.chunk == other.chunk) continue;  // other layers
      if (own.chunk == kUnknown || other.chunk == kUnknown) own.chunk = kUnknown;
      own.mirror = other.stage;
      slow[i].beyond_ns += slow[j].beyond_ns;
      slow.erase(slow.begin() + static_cast<std::ptrdiff_t>(j));
      break;
    }
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
  const StageSteps steps(scene, t.others);
  std::vector<Slow> slow;
  for (int32_t stage = 0; stage < scene.times.stages(); ++stage)
    if (Slow found; is_slow(scene, t, steps, stage, found.cause, found.beyond_ns)) slow.push_back(std::move(found));
  if (scene.two_ways) join_mirrors(scene.times.stages(), slow);
  std::stable_sort(slow.begin(), slow.end(), [](const Slow& a, const Slow& b) { return a.beyond_ns > b.beyond_ns; });
  if (slow.size() > kMostWorkerCauses) slow.resize(kMostWorkerCauses);
  for (const Slow& found : slow) {
    CauseDraft draft;
    draft.cause = found.cause;
    // Slow in some steps only: as much faster as the step's level says, kind by kind in the proportion of the means.
    const bool varies = slow_course(found.cause.course) && found.cause.mirror == kUnknown;
    draft.without = [&scene, stage = found.cause.stage, chunk = found.cause.chunk, mirror = found.cause.mirror,
                     to_others, course = varies ? found.cause.course : Course{}](uint32_t op, double& dur, double&) {
      const int32_t own = scene.graph.stage(op);
      if (scene.times.worker_of(op) == CellTimes::kNone || (own != stage && own != mirror)) return;
      const double to = (*to_others)[scene.times.place_of(op)];
      if (!course.varies()) {
        dur *= to;
        return;
      }
      if (chunk != kUnknown && scene.graph.chunk[op] != chunk) return;
      const double factor = course_factor(course, step_of(scene.graph, op));
      if (factor > 1) dur /= factor;
    };
    // Of part of a run nobody knows what even would be.
    // What is slow in some steps is no question of layers.
    if (scene.coverage.whole() && !varies)
      draft.evened = [&scene, to_even](uint32_t op, double& dur, double&) {
        if (scene.times.worker_of(op) != CellTimes::kNone) dur *= (*to_even)[scene.times.place_of(op)];
      };
    out.push_back(std::move(draft));
  }
}

}  // namespace stageline
