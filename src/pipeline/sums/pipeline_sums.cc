#include "pipeline/sums/pipeline_sums.h"

#include "base/parallel.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "pipeline/sums/course.h"

namespace stageline {
namespace {

// Parts two steps that overlap. First the beginning of the later one gives way, up to its first compute cell; then the
// end of the earlier one, down to its last compute cell. Steps then overlap only where ranks really compute for both at
// once.
void part_steps(StepSums& before, StepSums& step) {
  if (step.start_ns >= before.end_ns || step.start_ns < before.start_ns) return;
  step.start_ns = std::min(before.end_ns, step.pipeline_start_ns);
  before.end_ns = std::max(before.pipeline_end_ns, std::min(before.end_ns, step.start_ns));
}

constexpr size_t kMinShaped = 3;  // up to two long steps are exceptions each

// Says which long steps the run's shape in time explains: all from one step on, every n-th, or more with each step.
// These are how the run is and no exception, so what makes them long is looked for like everything else. A warm-up,
// where the first steps are the long ones, is not such a shape, since it ends by itself.
std::vector<bool> in_shape(std::span<const double> spans, double limit) {
  constexpr int kMaxExceptions = 8;  // single steps that may stand out of the shape
  std::vector<bool> shaped(spans.size(), false);
  std::vector<double> values(spans.begin(), spans.end());
  for (int left = 0; left <= kMaxExceptions; ++left) {
    const size_t longs = std::ranges::count_if(values, [&](const double v) { return v >= limit; });
    if (longs < kMinShaped) return shaped;
    const Course course = course_of(values);
    const bool regular =
        course.kind == CourseKind::kOnset || course.kind == CourseKind::kEvery || course.kind == CourseKind::kTrend;
    const double rise = course.high - course.low;
    if (!regular || !(rise > 0)) return shaped;
    // A long step fits the shape if it differs from the level there by at most half of the rise. The worst misfit is
    // removed, and the shape is fitted again.
    size_t worst = SIZE_MAX;
    for (size_t s = 0; s < values.size(); ++s) {
      if (!(values[s] >= limit) || std::abs(values[s] - course.level[s]) <= rise / 2) continue;
      if (worst == SIZE_MAX || values[s] > values[worst]) worst = s;
    }
    if (worst == SIZE_MAX) {
      for (size_t s = 0; s < values.size(); ++s) shaped[s] = values[s] >= limit;
      return shaped;
    }
    values[worst] = kNaN;
  }
  return shaped;
}

// Adds long steps that follow each other and are alike, as on a device that is hot for a while. Each differs from their
// mean by at most half of the mean's excess over `usual`. The first steps of a run are a warm-up.
void add_spells(std::span<const double> spans, double limit, double usual, std::vector<bool>& shaped) {
  for (size_t begin = 1, end; begin < spans.size(); begin = end + 1) {
    for (end = begin; end < spans.size() && spans[end] >= limit;) ++end;
    if (end - begin < kMinShaped || spans[begin - 1] >= limit) continue;
    const auto spell = spans.subspan(begin, end - begin);
    const double mean = mean_of({spell.begin(), spell.end()});
    if (std::ranges::all_of(spell, [&](double span) { return std::abs(span - mean) <= (mean - usual) / 2; }))
      std::fill(shaped.begin() + begin, shaped.begin() + end, true);
  }
}

std::vector<int32_t> incomplete_steps(const Trace& trace, const PipelineSums& sums) {
  std::vector<size_t> steps_of(trace.parts.size(), 0);
  for (const RankSums& rank : sums.ranks) ++steps_of[rank.part];
  const auto usual = [&](size_t steps) { return 2 * steps >= sums.steps.size(); };
  const auto expected = static_cast<size_t>(std::ranges::count_if(steps_of, usual));
  std::vector<int32_t> incomplete;
  auto rank = sums.ranks.begin();
  for (const StepSums& step : sums.steps) {
    size_t read = 0;
    for (; rank != sums.ranks.end() && rank->step == step.step; ++rank) read += usual(steps_of[rank->part]);
    if (read < expected) incomplete.push_back(step.step);
  }
  if (2 * incomplete.size() > sums.steps.size()) incomplete.clear();
  return incomplete;
}

std::vector<int32_t> long_steps(const Trace& trace, const PipelineSums& sums) {
  constexpr size_t kMinSteps = 4;
  std::vector<int32_t> outliers;
  if (sums.steps.size() < kMinSteps) return outliers;
  const bool one_axis =
      trace.clock == ClockState::kShared || trace.alignment == AlignState::kMapped || trace.parts.size() == 1;
  std::vector<double> spans;
  size_t r = 0;
  int64_t over_ns = INT64_MIN;  // the end of the step before, into which this one reaches where steps overlap
  for (const StepSums& step : sums.steps) {
    int64_t longest = 0;
    for (; r < sums.ranks.size() && sums.ranks[r].step == step.step; ++r)
      longest = std::max(longest, between_ns(sums.ranks[r].first_ns, sums.ranks[r].last_ns));
    const double further_ns = between_ns(std::clamp(over_ns, step.start_ns, step.end_ns), step.end_ns);
    spans.push_back(sums.is_incomplete(step.step) ? kNaN : one_axis ? further_ns : longest);
    over_ns = step.end_ns;
  }
  std::vector<double> known = spans;
  std::erase_if(known, [](double span) { return std::isnan(span); });
  const double usual = median_of(std::move(known)), limit = usual * kOutlierStep;
  if (!(limit > 0)) return outliers;
  std::vector<bool> shaped = in_shape(spans, limit);
  add_spells(spans, limit, usual, shaped);
  for (size_t s = 0; s < spans.size(); ++s)
    if (spans[s] >= limit && !shaped[s]) outliers.push_back(sums.steps[s].step);
  if (2 * outliers.size() >= spans.size()) outliers.clear();
  return outliers;
}

}  // namespace

PipelineSums pipeline_sums(const Trace& trace) {
  const Cells& cells = trace.cells;
  std::vector<StepRange> ranges = step_ranges(cells);
  std::erase_if(ranges, [](const StepRange& range) { return range.step == kUnknown; });
  std::vector<StepSums> steps(ranges.size());
  std::vector<std::vector<RankSums>> ranks(ranges.size());  // empty where the step has no compute cell
  parallel_for(ranges.size(), [&](size_t s) {
    const StepRange& range = ranges[s];
    StepSums& step = steps[s];
    step.step = range.step;
    bool any_compute = false;
    Span all, work;  // start and end of all cells, and of the step's own work; in common time
    for (size_t i = range.begin; i < range.end;) {
      RankSums rank{.step = range.step, .part = cells.part[i]};
      RunningUnion busy;
      Span own, own_work, compute;
      for (; i < range.end && cells.part[i] == rank.part; ++i) {
        const int64_t start = cells.start_ns[i], end = cells.end_ns[i];
        ++rank.cells;
        own.add(start, end);
        // A receive may be posted, and wait, while the step before still runs; a checkpoint after the optimizer is time
        // between steps.
        if (is_step_work(cells.kind[i])) own_work.add(start, end);
        if (!is_compute(cells.kind[i])) continue;
        compute.add(start, end);
        rank.busy_ns = sum_or_limit(rank.busy_ns, busy.add(start, end));
      }
      // A span over ranks is in common time, while what one rank did stays on its own clock. Maps keep order, so
      // mapping the first start and last end is enough.
      all.add(trace.common_ns(rank.part, own.start_ns), trace.common_ns(rank.part, own.end_ns));
      if (own_work.any())
        work.add(trace.common_ns(rank.part, own_work.start_ns), trace.common_ns(rank.part, own_work.end_ns));
      if (!compute.any()) continue;
      rank.first_ns = compute.start_ns, rank.last_ns = compute.end_ns;
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
  sums.incomplete = incomplete_steps(trace, sums);
  std::ranges::set_union(long_steps(trace, sums), sums.incomplete, std::back_inserter(sums.outliers));
  return sums;
}

}  // namespace stageline
