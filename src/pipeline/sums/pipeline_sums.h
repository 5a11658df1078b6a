// Computes the sums that both the summary tables and the findings use: per step, per rank and per stage.
// docs/analyses/pipeline-summary.md defines them.
#pragma once

#include "model/trace.h"

namespace stageline {

// One step over all ranks.
struct StepSums {
  int32_t step = 0;
  // First start and last end of the step's own work (is_step_work() of model/kind.h), or of all its cells where it has
  // none of that. So neither a receive posted while the previous step still runs nor a checkpoint after the optimizer
  // lengthens a step. Steps follow one another: work other than compute that starts before the previous step is over
  // does not count either.
  int64_t start_ns = 0, end_ns = 0;
  // First start and last end of the compute cells (F, B, I, W, F&B).
  int64_t pipeline_start_ns = 0, pipeline_end_ns = 0;
  int64_t span_ns() const { return between_ns(start_ns, end_ns); }
  int64_t pipeline_span_ns() const { return between_ns(pipeline_start_ns, pipeline_end_ns); }
};

// One rank in one step.
struct RankSums {
  int32_t step = 0, part = 0;
  int64_t first_ns = 0, last_ns = 0;  // first start and last end of its compute cells
  int64_t busy_ns = 0;                // union of its compute cells: overlapped halves count once
  int64_t cells = 0;                  // all its cells, messages and collectives included
  int64_t span_bubble_ns = 0;         // pipeline span of the step − busy
  int64_t inner_bubble_ns = 0;        // (last − first) − busy
};

struct PipelineSums {
  std::vector<StepSums> steps;  // sorted by step
  std::vector<RankSums> ranks;  // sorted by step, then part; ranks without compute cells in a step are absent
  // Outlier steps, ascending: they say nothing about the others. They are the incomplete steps and, in a run of four
  // steps or more, those of at least kOutlierStep × the median span. Steps that a shape in time explains are not
  // outliers (long from one step on, in every n-th step, or more with each step; pipeline/sums/course.h), and neither
  // are three or more alike that follow each other. If half of the steps are so long, none is an outlier. Where ranks
  // share no sure clock, the longest span that one rank has of a step stands for the step's span.
  std::vector<int32_t> outliers;
  // Steps without any compute cell of a rank that computes in half of the steps or more: its recording began later,
  // ended earlier, or was cut. Ascending. If they are more than half of the steps, none is listed.
  std::vector<int32_t> incomplete;
  bool is_outlier(int32_t step) const { return std::binary_search(outliers.begin(), outliers.end(), step); }
  bool is_incomplete(int32_t step) const { return std::ranges::binary_search(incomplete, step); }
};
inline constexpr double kOutlierStep = 1.3;
inline constexpr size_t kMaxFewSteps = 3;  // with so few steps it is unknown which is usual

// Times of a step over several ranks are common times (Trace::common_ns); a rank's own times stay raw. Cells outside
// steps (step kUnknown) do not count. O(cells).
PipelineSums pipeline_sums(const Trace& trace);

}  // namespace stageline
