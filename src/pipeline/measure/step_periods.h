// The time between steps. A step's period runs from its start to the start of the next one:
//
//   step 4 ▐▐▐▐▐▐▐▐▐▐ work ▐▐▐▐▐|······ gap ······|▐▐▐ step 5
//                               └ data, checkpoint, evaluation, logging: "other" rows say which, where there are any
//
// Work is forwards, backwards, collectives and the optimizer. Rows of kind "other" between two steps name the content
// of the gap and belong to neither step.
#pragma once

#include "pipeline/sums/course.h"
#include "pipeline/sums/pipeline_sums.h"

namespace stageline {

// A named part of a gap.
struct GapPhase {
  std::string name;         // of the rows: "data", "checkpoint"
  double ns = 0;            // covered by rows of this name, and by no name earlier in the list
  int32_t part = kUnknown;  // longest_part() of the ranks that have such rows
};

// Returns the part that spends at least twice as long as any other, for which these then wait; kUnknown: there is none.
int32_t longest_part(const std::map<int32_t, double>& by_part);

struct StepGap {
  int32_t step = 0;  // the step after the gap
  // Last end of work of the step before → first start of work of this one. Below 0 where steps overlap, by at most the
  // length of the shorter one.
  double ns = 0;
  std::vector<GapPhase> phases;  // the longest first
};

// A step from its first start of work to its last end, also where the next step has begun by then.
struct StepSpan {
  int32_t step = 0;
  double ns = 0;  // where ranks share no clock, the longest that any rank has on its own clock
};

struct StepPeriods {
  // By step; steps without work are absent. Those of PipelineSums::incomplete, and gaps beside them, are estimates of
  // what they are with all ranks, by the ranks that recorded every step; without such ranks they are absent.
  std::vector<StepSpan> spans;
  // Between steps whose numbers follow each other; the time between steps 10 and 20 of a sampled recording is not a
  // gap.
  std::vector<StepGap> gaps;
  double mean_ns = 0;  // over all gaps; 0 without gaps
  // Mean over those that are not long, without overlaps with steps that do not count (PipelineSums::outliers).
  double usual_ns = 0;
  // Indexes of gaps that exceed the median one by the amount that would make a step an outlier (0.3 × the median span).
  // Empty where long gaps follow a pattern, which `course` then describes.
  std::vector<size_t> long_gaps;
  Course course;  // how gaps develop: longer from a step on, growing with every step, or longer before every n-th one
  bool known() const { return !gaps.empty(); }
  bool is_long(size_t gap) const;
  // Returns how much longer a gap is than the others: a long one than the usual one. Where gaps are next to nothing
  // before some step, or except every n-th, each of the others than that low level. 0: it is like the others.
  double beyond_ns(size_t gap) const;
};

// Times are common ones; where ranks share no clock, a gap is the shortest that any rank has on its own clock.
// O(cells + rows of kind "other" in gaps × names there).
StepPeriods step_periods(const Trace& trace, const PipelineSums& sums);

}  // namespace stageline
