#include "plan/stage_bytes.h"

#include <numeric>

#include "plan/split.h"

namespace stageline::plan {
namespace {

Layout with_stages(Layout layout, int32_t ranks) {
  layout.pp = ranks;
  return layout;
}

}  // namespace

std::vector<int32_t> StageBytes::even(int32_t stages) const {
  std::vector<int32_t> out = even_bounds(static_cast<int32_t>(model.layers()), stages);
  std::adjacent_difference(out.begin(), out.end(), out.begin());
  return {out.begin() + 1, out.end()};
}

std::vector<RankPeak> StageBytes::peaks(const Schedule& schedule, std::vector<int32_t> layers) const {
  PlanProblem p;
  p.schedule = schedule;
  p.held = held_moments(schedule);
  p.memory = options;
  p.bytes = layout_bytes(model, with_stages(layout, p.ranks()), options);
  p.kind_of = model.kind_of;
  if (std::ssize(layers) != p.stages() || std::accumulate(layers.begin(), layers.end(), int64_t{0}) != model.layers())
    layers = even(p.stages());
  Plan plan;
  plan.bounds = {0};
  for (const int32_t n : layers) {
    plan.bounds.push_back(plan.bounds.back() + n);
    plan.recompute.push_back({0, full ? n : 0});
  }
  std::vector<RankPeak> out;
  for (int32_t r = 0; r < p.ranks(); ++r) out.push_back(peak_of(p, r, plan));
  return out;
}

double StageBytes::needed_by(const RankPeak& peak, int32_t ranks) const {
  return needed(peak, peak_bar(model, with_stages(layout, ranks), options), options);
}

StageBytes::Most StageBytes::most(const Schedule& schedule, const std::vector<int32_t>& layers) const {
  Most out;
  const std::vector<RankPeak> all = peaks(schedule, layers);
  const auto ranks = static_cast<int32_t>(all.size());
  for (int32_t r = 0; r < ranks; ++r)
    if (const double need = needed_by(all[r], ranks); r == 0 || need > out.needed) out = {r, all[r].sum(), need};
  return out;
}

}  // namespace stageline::plan
