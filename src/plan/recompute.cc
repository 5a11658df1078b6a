#include "plan/recompute.h"

namespace stageline::plan {
namespace {

// Returns the smallest number up to `max` that is enough; max + 1 where none is. More than enough is enough, too.
template <class Enough> int32_t min_enough(int32_t max, Enough&& enough) {
  int32_t lo = 0, hi = max + 1;
  while (lo < hi) {
    const int32_t middle = lo + (hi - lo) / 2;
    enough(middle) ? hi = middle : lo = middle + 1;
  }
  return lo;
}

}  // namespace

bool recompute_rank(const PlanProblem& p, const LayerSums& sums, int32_t rank, std::span<ChunkPart> parts) {
  const auto is_enough = [&] { return p.limit <= 0 || fits(p, peak_of(p, rank, parts)); };
  int64_t best_ns = INT64_MAX;
  std::vector<ChunkPart> best;
  const auto consider = [&] {
    const int64_t ns =
        sum_over<int64_t>(parts, [&](const ChunkPart& x) { return again_ns(sums, x.lo, x.recompute, x.hi); });
    if (ns < best_ns && is_enough()) best_ns = ns, best.assign(parts.begin(), parts.end());
  };
  for (ChunkPart& x : parts) x.recompute = {};
  if (is_enough()) return true;
  for (const Modules modules : p.selections) {
    for (ChunkPart& x : parts) x.recompute = {modules, 0};
    consider();
  }
  if (p.full) {
    // Layers of the chunk that is held most often for its time come first.
    std::vector<std::pair<double, size_t>> order;
    int32_t total = 0;
    for (size_t c = 0; c < parts.size(); ++c) {
      order.emplace_back(0, c);
      for (const HeldMoment& m : p.held[rank])
        order[c].first = std::min(order[c].first, -1.0 * m.held[c] - m.waiting[c]);
      total += parts[c].layers();
    }
    std::ranges::sort(order);
    const auto fill = [&](int32_t n) {
      for (const auto& [_, c] : order) {
        parts[c].recompute = {0, std::min(n, parts[c].layers())};
        n -= parts[c].recompute.full;
      }
      return is_enough();
    };
    if (const int32_t n = min_enough(total, fill); n <= total) {
      fill(n);
      // An earlier chunk may need fewer once a later one has given enough.
      for (ChunkPart& x : parts) {
        if (parts.size() == 1) break;
        x.recompute.full = min_enough(x.recompute.full, [&](int32_t fewer) {
          x.recompute.full = fewer;
          return is_enough();
        });
      }
      consider();
    }
  }
  std::ranges::copy(best, parts.begin());
  return !best.empty();
}

bool recompute_all(const PlanProblem& p, const LayerSums& sums, Plan& plan) {
  plan.recompute.assign(plan.bounds.size() - 1, {});
  if (p.per_rank) {
    for (int32_t r = 0; r < p.ranks(); ++r) {
      std::vector<ChunkPart> parts = parts_of(p, r, plan);
      if (!recompute_rank(p, sums, r, parts)) return false;
      for (const ChunkPart& x : parts) plan.recompute[x.stage] = x.recompute;
    }
    return true;
  }
  // One choice for all: nothing, a set of modules, or the first N layers of every virtual stage.
  const auto is_enough = [&](const Recompute& all) {
    for (size_t s = 0; s + 1 < plan.bounds.size(); ++s)
      plan.recompute[s] = {all.modules, std::min(all.full, plan.bounds[s + 1] - plan.bounds[s])};
    for (int32_t r = 0; r < p.ranks() && p.limit > 0; ++r)
      if (!fits(p, peak_of(p, r, plan))) return false;
    return true;
  };
  if (is_enough({})) return true;
  std::vector<Recompute> choices;
  for (const Modules modules : p.selections) choices.push_back({modules, 0});
  if (p.full) {
    const int32_t widest = std::ranges::max(plan.layers());
    choices.push_back({0, p.all_or_none ? widest : std::min(widest, min_enough(widest, [&](int32_t n) {
                                                              return is_enough({0, n});
                                                            }))});
  }
  std::optional<Plan> best;
  int64_t best_ns = INT64_MAX;
  for (const Recompute& choice : choices) {
    if (!is_enough(choice)) continue;
    int64_t ns = 0;
    for (size_t s = 0; s + 1 < plan.bounds.size(); ++s)
      ns = std::max(ns, again_ns(sums, plan.bounds[s], plan.recompute[s], plan.bounds[s + 1]));
    if (ns < best_ns) best_ns = ns, best = plan;
  }
  if (best) plan = std::move(*best);
  return best_ns < INT64_MAX;
}

}  // namespace stageline::plan
