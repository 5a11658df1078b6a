// The share of bubble in the ranks' time, and the stage that takes longest, of one step or several: the figures
// `bubble` and `stage_ratio`.
#pragma once

#include "pipeline/sums/pipeline_sums.h"

namespace stageline {

// Returns the mean over ranks of span bubble ÷ pipeline span of a step; NaN without either. `ranks` are of that step.
double bubble_of(const StepSums& step, std::span<const RankSums> ranks);

struct StageRatio {
  int32_t stage = 0;
  double busy_ns = 0;  // mean over its ranks and the steps
  double ratio = 0;    // to the median of the other stages; NaN with fewer than two stages
};
// By stage; ranks whose stage is not known are left out.
std::vector<StageRatio> stage_ratios(const Trace& trace, std::span<const RankSums> ranks);

// Returns the same of a run's steps without outliers.
double mean_bubble(const PipelineSums& sums);
std::vector<StageRatio> usual_stage_ratios(const Trace& trace, const PipelineSums& sums);

}  // namespace stageline
