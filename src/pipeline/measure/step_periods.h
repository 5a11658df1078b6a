// The time between steps. A step's period runs from its start to the start of the next one:
//
//   step 4 ▐▐▐▐▐▐▐▐▐▐ work ▐▐▐▐▐|······ gap ······|▐▐▐ step 5
//                               └ data, checkpoint, evaluation, logging: "other" rows say which, where there are any
//
// Work is forwards, backwards, collectives and the optimizer; rows of kind "other" name what a gap holds and are no
// work of a step where they stand between two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/course.h"
#include "model/pipeline_sums.h"
#include "model/trace.h"

namespace stageline {

// What a gap holds by name.
struct GapPhase {
  std::string name;         // of the rows: "data", "checkpoint"
  double ns = 0;            // covered by rows of this name and of none that stands before it in the list
  int32_t part = kUnknown;  // the one rank that has such rows there; kUnknown: several have
};

struct StepGap {
  int32_t step = 0;  // that it comes before
  double ns = 0;  // last end of work of the step before → first start of work of this one; below 0 where they overlap
  std::vector<GapPhase> phases;  // the longest first
};

struct StepPeriods {
  // Between steps whose numbers follow each other; what lies between steps 10 and 20 of a sampled recording is no gap.
  std::vector<StepGap> gaps;
  double mean_ns = 0;   // over all gaps; 0 without
  double usual_ns = 0;  // mean over those that are not long
  // Into gaps: longer than the median one by what would make a step an outlier (0.3 × the median span). None where long
  // ones are the run's shape in time.
  std::vector<size_t> long_gaps;
  Course course;  // of gaps: longer from a step on, with every step, before every n-th one
  bool known() const { return !gaps.empty(); }
  bool is_long(size_t gap) const;
  // What a gap holds beyond the others: of a long one beyond the usual, and where only some are more than next to
  // nothing, one step after the other or every n-th, beyond these. 0: it is like them.
  double beyond_ns(size_t gap) const;
};

// Times are common ones; where ranks share no clock a gap is the shortest that one rank has on its own. O(cells).
StepPeriods step_periods(const Trace& trace, const PipelineSums& sums);

}  // namespace stageline
