// Time between steps. For every name in the gaps it has the time in each usual gap, and the time of a few gaps beyond
// that. These are sums of recorded times, since nothing else runs there. Part of causes.
#pragma once

#include "pipeline/measure/step_periods.h"

namespace stageline {

struct GapTime {
  std::string name;                   // "": time that was not recorded
  bool sometimes = false;             // beyond what is usual, before some steps only
  int32_t part = kUnknown;            // longest_part() of those that recorded it
  std::vector<int32_t> steps;         // the steps after the gaps
  std::map<int32_t, double> by_step;  // its length before each of the run's steps
  double each_ns = 0;                 // mean of these gaps
  double mean_ns = 0;                 // mean over all periods
};

std::vector<GapTime> gap_times(const StepPeriods& periods);

}  // namespace stageline
