#include "model/pipeline_sums.h"

#include <algorithm>

#include "base/parallel.h"
#include "model/stage_costs.h"
#include "model/step_work.h"

namespace stageline {
namespace {

struct Span {
  int64_t start_ns = INT64_MAX, end_ns = INT64_MIN;
  bool any() const { return start_ns <= end_ns; }
  void add(int64_t start, int64_t end) {
    start_ns = std::min(start_ns, start);
    end_ns = std::max(end_ns, end);
  }
};

// What of a step begins before the one before is over gives way, up to its first compute cell; then the end of the
// step before does, down to its last one. Only where ranks really compute for two steps at once do these overlap.
void part_steps(StepSums& before, StepSums& step) {
  if (step.start_ns >= before.end_ns || step.start_ns < before.start_ns) return;
  step.start_ns = std::min(before.end_ns, step.pipeline_start_ns);
  before.end_ns = std::max(before.pipeline_end_ns, std::min(before.end_ns, step.start_ns));
}

std::vector<int32_t> outlier_steps(const Trace& trace, const PipelineSums& sums) {
  constexpr size_t kLeastSteps = 4;
  std::vector<int32_t> outliers;
  if (sums.steps.size() < kLeastSteps) return outliers;
  const bool one_axis =
      trace.clock == ClockState::kShared || trace.alignment == AlignState::kMapped || trace.parts.size() == 1;
  std::vector<double> spans;
  size_t r = 0;
  for (const StepSums& step : sums.steps) {
    int64_t longest = 0;
    for (; r < sums.ranks.size() && sums.ranks[r].step == step.step; ++r)
      longest = std::max(longest, between_ns(sums.ranks[r].first_ns, sums.ranks[r].last_ns));
    spans.push_back(static_cast<double>(one_axis ? step.span_ns() : longest));
  }
  const double limit = median_of(spans) * kOutlierStep;
  for (size_t s = 0; s < spans.size() && limit > 0; ++s)
    if (spans[s] >= limit) outliers.push_back(sums.steps[s].step);
  return outliers;
}

}  // namespace

PipelineSums pipeline_sums(const Trace& trace) {
  const Cells& cells = trace.cells;
  std::vector<StepRange> ranges = step_ranges(cells);
  std::erase_if(ranges, [](const StepRange& range) { return range.step == kUnknown; });
  std::vector<StepSums> steps(ranges.size());
  std::vector<std::vector<RankSums>> ranks(ranges.size());  // empty: the step has no compute cell
  parallel_for(ranges.size(), [&](size_t s) {
    const StepRange& range = ranges[s];
    StepSums& step = steps[s];
    step.step = range.step;
    bool any_compute = false;
    Span all, work;  // of all cells, and of work alone; on common time
    for (size_t i = range.begin; i < range.end;) {
      RankSums rank;
      rank.step = range.step;
      rank.part = cells.part[i];
      int64_t covered_to = 0;  // cells come in start order, so the union is a running maximum
      bool computes = false;
      Span own, own_work;
      for (; i < range.end && cells.part[i] == rank.part; ++i) {
        const int64_t start = cells.start_ns[i], end = cells.end_ns[i];
        ++rank.cells;
        own.add(start, end);
        // A receive may be posted, and wait, while the step before still runs; a checkpoint after the optimizer is time
        // between steps.
        if (is_step_work(cells.kind[i])) own_work.add(start, end);
        if (!is_compute(cells.kind[i])) continue;
        if (!computes) {
          rank.first_ns = start;
          rank.last_ns = end;
          covered_to = start;
          computes = true;
        }
        rank.last_ns = std::max(rank.last_ns, end);
        rank.busy_ns = sum_or_limit(rank.busy_ns, std::max<int64_t>(0, between_ns(std::max(start, covered_to), end)));
        covered_to = std::max(covered_to, end);
      }
      // What spans ranks is common time; what one rank did stays on its own clock. Maps are monotone.
      all.add(trace.common_ns(rank.part, own.start_ns), trace.common_ns(rank.part, own.end_ns));
      if (own_work.any())
        work.add(trace.common_ns(rank.part, own_work.start_ns), trace.common_ns(rank.part, own_work.end_ns));
      if (!computes) continue;
      const int64_t begins = trace.common_ns(rank.part, rank.first_ns), ends = trace.common_ns(rank.part, rank.last_ns);
      step.pipeline_start_ns = any_compute ? std::min(step.pipeline_start_ns, begins) : begins;
      step.pipeline_end_ns = any_compute ? std::max(step.pipeline_end_ns, ends) : ends;
      any_compute = true;
      ranks[s].push_back(rank);
    }
    for (RankSums& rank : ranks[s]) {
      rank.span_bubble_ns = between_ns(rank.busy_ns, step.pipeline_span_ns());
      rank.inner_bubble_ns = between_ns(rank.busy_ns, between_ns(rank.first_ns, rank.last_ns));
    }
    const Span& span = work.any() ? work : all;
    step.start_ns = span.start_ns;
    step.end_ns = span.end_ns;
  });
  PipelineSums sums;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!ranks[s].empty() && !sums.steps.empty()) part_steps(sums.steps.back(), steps[s]);
    sums.steps.push_back(steps[s]);
    sums.ranks.insert(sums.ranks.end(), ranks[s].begin(), ranks[s].end());
  }
  sums.outliers = outlier_steps(trace, sums);
  return sums;
}

}  // namespace stageline
