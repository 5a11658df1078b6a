#include "pipeline/sums/step_ratios.h"

#include "model/statistics.h"

namespace stageline {

double bubble_of(const StepSums& step, std::span<const RankSums> ranks) {
  double busy = 0;  // as a double, because sums over thousands of ranks may pass 2^63 ns
  for (const RankSums& rank : ranks) busy += rank.busy_ns;
  const double whole = step.pipeline_span_ns() * static_cast<double>(ranks.size());
  return whole > 0 ? 1 - busy / whole : std::nan("");
}

std::vector<StageRatio> stage_ratios(const Trace& trace, std::span<const RankSums> ranks) {
  struct Sum {
    double ns = 0, count = 0;
  };
  std::map<int32_t, Sum> of_stage;
  for (const RankSums& rank : ranks) {
    const int32_t stage = trace.parts[rank.part].stage;
    if (stage == kUnknown) continue;
    of_stage[stage].ns += rank.busy_ns;
    ++of_stage[stage].count;
  }
  std::vector<StageRatio> out;
  for (const auto& [stage, sum] : of_stage) out.push_back({stage, sum.ns / sum.count});
  for (StageRatio& stage : out) {
    std::vector<double> others;
    for (const StageRatio& other : out)
      if (other.stage != stage.stage) others.push_back(other.busy_ns);
    stage.ratio = stage.busy_ns / median_of(std::move(others));
  }
  return out;
}

double mean_bubble(const PipelineSums& sums) {
  std::vector<double> bubbles;
  size_t r = 0;
  for (const StepSums& step : sums.steps) {
    const size_t begin = r;
    while (r < sums.ranks.size() && sums.ranks[r].step == step.step) ++r;
    const double bubble = bubble_of(step, std::span(sums.ranks).subspan(begin, r - begin));
    if (!sums.is_outlier(step.step) && !std::isnan(bubble)) bubbles.push_back(bubble);
  }
  return bubbles.empty() ? std::nan("") : mean_of(bubbles);
}

std::vector<StageRatio> usual_stage_ratios(const Trace& trace, const PipelineSums& sums) {
  std::vector<RankSums> usual;
  std::ranges::copy_if(sums.ranks, std::back_inserter(usual),
                       [&](const RankSums& rank) { return !sums.is_outlier(rank.step); });
  return stage_ratios(trace, usual);
}

}  // namespace stageline
