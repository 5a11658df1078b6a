// How many steps a pipeline run has and how long they take: the one place that answers this. Headline, breakdown,
// what-if, tables and figures ask it.
//
//   step 4 ▐▐▐▐▐▐▐ span ▐▐▐▐▐▐▐|···· gap ····|▐▐▐ step 5      period = span + gap, from start to start
//   step 4 ▐▐▐▐▐▐▐ span ▐▐▐▐▐▐▐▐▐                             the gap of steps that overlap is below 0
//                       |▐▐▐▐▐▐▐▐▐▐▐▐ step 5
#pragma once

#include <cstdint>
#include <vector>

#include "facts/run.h"

namespace stageline {

// Means over a set of steps. The gap is the mean of the gaps between them.
struct StepMean {
  int64_t steps = 0;
  double span_ns = 0;  // first start to the last end of the step's work, also where the next step has begun by then
  double gap_ns = 0;
  double period_ns() const { return span_ns + gap_ns; }
};

struct StepMeans {
  std::vector<double> span_ns;  // for each step of `numbers`
  std::vector<int32_t> numbers;
  StepMean usual;  // without PipelineSums::outliers and without long gaps
  StepMean all;    // without PipelineSums::incomplete
};

// Spans are those of the replayed graph where the run has one, so that prices and step times agree to the nanosecond;
// else those of StepPeriods.
const StepMeans& step_means_of(const Run& run);

}  // namespace stageline
