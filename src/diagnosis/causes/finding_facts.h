// The facts that findings and the headline are made of.
#pragma once

#include "pipeline/cells/link_cells.h"
#include "pipeline/measure/run_coverage.h"

namespace stageline {

struct FindingFacts {
  const Trace& trace;
  const RunCoverage& coverage;
  Extent extent;
  const PipelineSums& sums;
  std::vector<StageCost> costs;
  double median_step_ns = 0;   // the median step, by which outliers are recognised
  double mean_step_ns = 0;     // mean time from start to end of a step, outliers left out
  double period_ns = 0;        // the mean step that a report gives: from a step's start to the next one's
  double usual_period_ns = 0;  // the same without all outliers, also those that causes explain; bars are shares of it
  double compute = 0, bubble = 0, outside = 0;  // shares of all ranks' step time; they add up to 1
  // Cells that begin before their input by more than timestamps of one machine differ; none where work repeats or
  // clocks are apart.
  EarlyLinks early = {};
  // Cells begin before their input has ended by more than a whole step of a rank. Then times between timestamps of
  // different ranks mean nothing, and neither do sums of waits.
  bool contradictory = false;
};

}  // namespace stageline
