#include "model/pipeline_sums.h"

#include <algorithm>

namespace stageline {

PipelineSums pipeline_sums(const Trace& trace) {
  const Cells& cells = trace.cells;
  PipelineSums sums;
  for (const StepRange& range : step_ranges(cells)) {
    if (range.step == kUnknown) continue;
    StepSums step;
    step.step = range.step;
    step.start_ns = INT64_MAX;
    step.end_ns = INT64_MIN;
    bool any_compute = false;
    const size_t first_rank = sums.ranks.size();
    for (size_t i = range.begin; i < range.end;) {
      RankSums rank;
      rank.step = range.step;
      rank.part = cells.part[i];
      int64_t covered_to = 0;  // cells come in start order, so the union is a running maximum
      bool computes = false;
      int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
      for (; i < range.end && cells.part[i] == rank.part; ++i) {
        const int64_t start = cells.start_ns[i], end = cells.end_ns[i];
        first_ns = std::min(first_ns, start);
        last_ns = std::max(last_ns, end);
        ++rank.cells;
        if (!is_compute(cells.kind[i])) continue;
        if (!computes) {
          rank.first_ns = start;
          rank.last_ns = end;
          covered_to = start;
          computes = true;
        }
        rank.last_ns = std::max(rank.last_ns, end);
        rank.busy_ns += std::max<int64_t>(0, end - std::max(start, covered_to));
        covered_to = std::max(covered_to, end);
      }
      // What spans ranks is common time; what one rank did stays on its own clock. Maps are monotone.
      step.start_ns = std::min(step.start_ns, trace.common_ns(rank.part, first_ns));
      step.end_ns = std::max(step.end_ns, trace.common_ns(rank.part, last_ns));
      if (!computes) continue;
      const int64_t begins = trace.common_ns(rank.part, rank.first_ns), ends = trace.common_ns(rank.part, rank.last_ns);
      step.pipeline_start_ns = any_compute ? std::min(step.pipeline_start_ns, begins) : begins;
      step.pipeline_end_ns = any_compute ? std::max(step.pipeline_end_ns, ends) : ends;
      any_compute = true;
      sums.ranks.push_back(rank);
    }
    for (size_t r = first_rank; r < sums.ranks.size(); ++r) {
      RankSums& rank = sums.ranks[r];
      rank.span_bubble_ns = step.pipeline_span_ns() - rank.busy_ns;
      rank.inner_bubble_ns = rank.last_ns - rank.first_ns - rank.busy_ns;
    }
    sums.steps.push_back(step);
  }
  return sums;
}

}  // namespace stageline
