#include "diagnosis/what_if/stage_bytes.h"

#include "plan/split.h"

namespace stageline {
namespace {

plan::Layout with_stages(plan::Layout layout, int32_t ranks) {
  layout.pp = ranks;
  return layout;
}

}  // namespace

std::vector<int32_t> StageBytes::even(int32_t stages) const { return plan::even_layers(model.layers(), stages); }

std::vector<plan::RankPeak> StageBytes::peaks(const Schedule& schedule, std::vector<int32_t> layers) const {
  plan::PlanProblem p =
      plan::problem_of(schedule, model, with_stages(layout, static_cast<int32_t>(schedule.ranks.size())), options);
  if (std::ssize(layers) != p.stages() || std::accumulate(layers.begin(), layers.end(), int64_t{0}) != model.layers())
    layers = even(p.stages());
  if (std::ssize(beyond) == p.ranks()) p.other_bytes = beyond;
  plan::Plan split = plan::plan_of(layers);
  for (size_t s = 0; full && s < layers.size(); ++s) split.recompute[s].full = layers[s];
  std::vector<plan::RankPeak> out;
  for (int32_t r = 0; r < p.ranks(); ++r) out.push_back(plan::peak_of(p, r, split));
  return out;
}

std::vector<MeasuredStage> StageBytes::compare_with(const Schedule& ran, const std::vector<int32_t>& layers) {
  std::vector<MeasuredStage> out;
  if (measured.empty() || measured.size() != ran.ranks.size()) return out;
  beyond.clear();
  const std::vector<plan::RankPeak> model_peaks = peaks(ran, layers);
  beyond.assign(measured.size(), 0);
  for (size_t s = 0; s < measured.size(); ++s) {
    if (measured[s] < 0) continue;
    const double bytes = static_cast<double>(measured[s]), of_model = model_peaks[s].sum();
    beyond[s] = std::llround(bytes - of_model);
    out.push_back({static_cast<int32_t>(s), bytes, of_model});
  }
  return out;
}

double StageBytes::needed_by(const plan::RankPeak& peak, int32_t ranks) const {
  return plan::needed(peak, plan::peak_bar(model, with_stages(layout, ranks), options), options);
}

StageBytes::Most StageBytes::most(const Schedule& schedule, const std::vector<int32_t>& layers) const {
  Most out;
  const std::vector<plan::RankPeak> all = peaks(schedule, layers);
  const auto ranks = static_cast<int32_t>(all.size());
  for (int32_t r = 0; r < ranks; ++r)
    if (const double need = needed_by(all[r], ranks); r == 0 || need > out.needed) out = {r, all[r].sum(), need};
  return out;
}

}  // namespace stageline
