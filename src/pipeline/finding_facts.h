// What findings and the headline are made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/pipeline_sums.h"
#include "model/stage_costs.h"
#include "model/trace.h"
#include "pipeline/run_coverage.h"

namespace stageline {

struct FindingFacts {
  const Trace& trace;
  const RunCoverage& coverage;
  Extent extent;
  PipelineSums sums;
  std::vector<StageCost> costs;
  std::vector<StageLoad> loads;
  double median_step_ns = 0;                    // what outliers are told by
  double mean_step_ns = 0;                      // "a step" in every sentence: outliers left out
  std::vector<int32_t> outliers;                // outlier_steps(): told apart, not averaged in
  double compute = 0, bubble = 0, outside = 0;  // shares of all ranks' step time; add up to 1
};

inline bool is_outlier(const FindingFacts& f, int32_t step) {
  return std::binary_search(f.outliers.begin(), f.outliers.end(), step);
}

}  // namespace stageline
