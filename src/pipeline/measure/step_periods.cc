#include "pipeline/measure/step_periods.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "base/number.h"
#include "model/statistics.h"
#include "model/step_work.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {
namespace {

constexpr int64_t kNever = INT64_MAX;

struct Span {
  int64_t start_ns = kNever, end_ns = INT64_MIN;
  bool any() const { return start_ns <= end_ns; }
  void add(int64_t start, int64_t end) {
    start_ns = std::min(start_ns, start);
    end_ns = std::max(end_ns, end);
  }
};

struct StepWork {
  int32_t step = 0;
  Span all;                     // on common time
  std::map<int32_t, Span> own;  // for each part, on its own clock; filled where ranks share no clock
};

struct Phase {
  int64_t start_ns, end_ns;
  int32_t part;
};
using Phases = std::map<std::string_view, std::vector<Phase>>;

std::vector<StepWork> works_of(const Trace& trace) {
  const Cells& cells = trace.cells;
  const bool common = trace.comparable();
  std::vector<StepWork> works;
  for (const StepRange& range : step_ranges(cells)) {
    if (range.step == kUnknown) continue;
    StepWork work;
    work.step = range.step;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (!is_step_work(cells.kind[i])) continue;
      const int32_t part = cells.part[i];
      if (common)
        work.all.add(trace.common_ns(part, cells.start_ns[i]), trace.common_ns(part, cells.end_ns[i]));
      else
        work.own[part].add(cells.start_ns[i], cells.end_ns[i]);
    }
    if (work.all.any() || !work.own.empty()) works.push_back(std::move(work));
  }
  return works;
}

// Returns the time from the end of one span to the start of the next. Spans overlap by no more than the shorter of them
// lasts. A step with a row that seems to last for years contains later steps whole, but they are not years ahead of it.
double apart_ns(const Span& before, const Span& after) {
  const int64_t gap = between_ns(before.end_ns, after.start_ns);
  if (gap >= 0) return gap;
  const double shorter = std::min(between_ns(before.start_ns, before.end_ns), between_ns(after.start_ns, after.end_ns));
  return std::max<double>(gap, -shorter);
}

double span_ns(const StepWork& work) {
  const auto length = [](const Span& span) { return static_cast<double>(between_ns(span.start_ns, span.end_ns)); };
  double longest = work.all.any() ? length(work.all) : 0;
  for (const auto& [part, own] : work.own) longest = std::max(longest, length(own));
  return longest;
}

double gap_ns(const StepWork& before, const StepWork& after, bool common) {
  if (common) return apart_ns(before.all, after.all);
  double least = kNaN;
  for (const auto& [part, own] : before.own) {
    const auto next = after.own.find(part);
    if (next == after.own.end()) continue;
    const double ns = apart_ns(own, next->second);
    if (!(ns >= least)) least = ns;
  }
  return least;
}

// [from, to) of common time, and the rows of kind "other" in it by name.
struct Between {
  int64_t from_ns, to_ns;
  Phases phases;
};

// Gaps are in the order of time and do not overlap, so a row's gaps are found by a search for the first.
void collect_phases(const Trace& trace, std::vector<Between>& gaps) {
  const Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.kind[i] != CellKind::kOther) continue;
    const int32_t part = cells.part[i];
    const int64_t start = trace.common_ns(part, cells.start_ns[i]), end = trace.common_ns(part, cells.end_ns[i]);
    auto gap = std::partition_point(gaps.begin(), gaps.end(), [&](const Between& g) { return g.to_ns <= start; });
    for (; gap != gaps.end() && gap->from_ns < end; ++gap)
      gap->phases[trace.slice_name(cells.at(i))].push_back(
          {std::max(start, gap->from_ns), std::min(end, gap->to_ns), part});
  }
}

std::vector<GapPhase> named(Phases phases) {
  std::vector<GapPhase> list;
  std::vector<std::pair<int64_t, int64_t>> taken;  // stretches that earlier names cover
  // The name whose rows last longest in total goes first, so that a long checkpoint is not called by a short row in it.
  std::vector<std::pair<double, std::string_view>> order;
  for (const auto& [name, rows] : phases) {
    double sum = 0;
    for (const Phase& row : rows) sum += between_ns(row.start_ns, row.end_ns);
    order.emplace_back(-sum, name);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [sum, name] : order) {
    GapPhase phase;
    phase.name = name;
    phase.part = phases[name].front().part;
    std::vector<std::pair<int64_t, int64_t>> all = taken;
    for (const Phase& row : phases[name]) {
      all.emplace_back(row.start_ns, row.end_ns);
      if (row.part != phase.part) phase.part = kUnknown;
    }
    const auto covered = [](std::vector<std::pair<int64_t, int64_t>> rows) {
      std::sort(rows.begin(), rows.end());
      double ns = 0;
      int64_t to = INT64_MIN;
      for (const auto& [start, end] : rows) {
        if (end <= to) continue;
        ns += between_ns(std::max(start, to), end);
        to = end;
      }
      return ns;
    };
    phase.ns = covered(all) - covered(taken);
    taken = std::move(all);
    if (phase.ns > 0) list.push_back(std::move(phase));
  }
  std::stable_sort(list.begin(), list.end(), [](const GapPhase& a, const GapPhase& b) { return a.ns > b.ns; });
  return list;
}

}  // namespace

bool StepPeriods::is_long(size_t gap) const { return std::binary_search(long_gaps.begin(), long_gaps.end(), gap); }

double StepPeriods::beyond_ns(size_t gap) const {
  if (is_long(gap)) return gaps[gap].ns - usual_ns;
  const auto [low, high] = std::minmax(course.low, course.high);
  const bool two_levels = course.kind == CourseKind::kOnset || course.kind == CourseKind::kEvery;
  if (!two_levels || low > kNextToNothing * high || course.level[gap] < (low + high) / 2) return 0;
  return std::max(0.0, gaps[gap].ns - low);
}

StepPeriods step_periods(const Trace& trace, const PipelineSums& sums) {
  StepPeriods out;
  const bool common = trace.comparable();
  const std::vector<StepWork> works = works_of(trace);
  for (const StepWork& work : works) out.spans.push_back({work.step, span_ns(work)});
  std::vector<Between> between;
  std::vector<size_t> gap_of;  // for each of `between` its index in out.gaps
  for (size_t s = 1; s < works.size(); ++s) {
    if (works[s].step != works[s - 1].step + 1) continue;
    StepGap gap{works[s].step, gap_ns(works[s - 1], works[s], common), {}};
    if (std::isnan(gap.ns)) continue;
    if (common && gap.ns > 0) {
      between.push_back({works[s - 1].all.end_ns, works[s].all.start_ns, {}});
      gap_of.push_back(out.gaps.size());
    }
    out.gaps.push_back(std::move(gap));
  }
  collect_phases(trace, between);
  for (size_t i = 0; i < between.size(); ++i) out.gaps[gap_of[i]].phases = named(std::move(between[i].phases));
  if (out.gaps.empty()) return out;
  std::vector<double> all, spans, usual;
  for (const StepGap& gap : out.gaps) all.push_back(gap.ns);
  for (const StepSums& step : sums.steps) spans.push_back(step.span_ns());
  out.mean_ns = mean_of(all);
  out.course = course_of(all);
  const bool shaped = out.course.kind == CourseKind::kOnset || out.course.kind == CourseKind::kTrend ||
                      out.course.kind == CourseKind::kEvery;
  const double limit = median_of(all) + (kOutlierStep - 1) * median_of(spans);
  // How far a step that does not count reaches into its neighbours is a part of its own length.
  const auto beside_outlier = [&](int32_t step) { return sums.is_outlier(step) || sums.is_outlier(step - 1); };
  for (size_t i = 0; i < all.size(); ++i)
    if (all.size() > 2 && all[i] > limit && !shaped)
      out.long_gaps.push_back(i);
    else if (all[i] >= 0 || !beside_outlier(out.gaps[i].step))
      usual.push_back(all[i]);
  if (!usual.empty()) out.usual_ns = mean_of(usual);
  return out;
}

}  // namespace stageline
