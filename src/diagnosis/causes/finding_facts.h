// What findings and the headline are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "model/pipeline_sums.h"
#include "model/stage_costs.h"
#include "model/trace.h"
#include "pipeline/cells/early_links.h"
#include "pipeline/measure/run_coverage.h"

namespace stageline {

struct FindingFacts {
  const Trace& trace;
  const RunCoverage& coverage;
  Extent extent;
  const PipelineSums& sums;
  std::vector<StageCost> costs;
  std::vector<StageLoad> loads;
  double median_step_ns = 0;                    // what outliers are told by
  double mean_step_ns = 0;                      // its work, outliers left out
  double gap_ns = 0;                            // and what passes until the next one: "a step" is both
  double compute = 0, bubble = 0, outside = 0;  // shares of all ranks' step time; add up to 1
  EarlyLinks early = {};  // by more than stamps of one machine differ; none where work repeats or clocks are apart
  // Cells begin before what they wait for has ended by more than a rank's whole step takes: what lies between stamps of
  // different ranks means nothing, and neither does a sum of waits.
  bool contradictory = false;
};

}  // namespace stageline
