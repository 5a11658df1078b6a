#include "pipeline/measure/step_periods.h"

#include "model/intervals.h"
#include "model/row_names.h"
#include "model/statistics.h"

namespace stageline {
namespace {

struct StepWork {
  int32_t step = 0;
  double estimated_ns = kNaN;  // the span, where it is estimated
  Span all;                    // on common time
  std::map<int32_t, Span>
      by_part;  // on the part's own clock; filled where ranks share no clock or steps are incomplete
};

struct Phase {
  int64_t start_ns, end_ns;
  int32_t part;
};
using Phases = std::map<std::string_view, std::vector<Phase>>;

std::vector<StepWork> works_of(const Trace& trace, bool any_incomplete) {
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
      if (common) work.all.add(trace.common_ns(part, cells.start_ns[i]), trace.common_ns(part, cells.end_ns[i]));
      if (!common || any_incomplete) work.by_part[part].add(cells.start_ns[i], cells.end_ns[i]);
    }
    if (work.all.any() || !work.by_part.empty()) works.push_back(std::move(work));
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

// The span of a step: of all ranks, or the longest of one of them.
double span_ns(const StepWork& work, bool common) {
  int64_t longest = common ? work.all.length_ns() : 0;
  for (const auto& [part, span] : work.by_part)
    if (!common) longest = std::max(longest, span.length_ns());
  return longest;
}

// Lets incomplete steps begin and end as the ranks that recorded every step say: earlier and later than these by what
// the other ranks add in the median complete step. Returns false if there is no such rank.
//
//     complete    ├ stage 0 ┤
//                    ├ stages 1 to 3, in every step ┤      begins 10 ms before these
//     incomplete     ├ stages 1 to 3 ┤                      so this one did too
bool estimate_incomplete(const Trace& trace, const PipelineSums& sums, std::vector<StepWork>& works) {
  std::map<int32_t, size_t> steps_of;
  for (const StepWork& work : works)
    for (const auto& [part, span] : work.by_part) ++steps_of[part];
  std::erase_if(steps_of, [&](const auto& part) { return part.second < works.size(); });
  if (steps_of.empty()) return false;
  const bool common = trace.comparable();
  const auto of_every = [&](const StepWork& work) {
    StepWork own;
    for (const auto& [part, steps] : steps_of) {
      const Span& span = work.by_part.at(part);
      own.by_part[part] = span;
      if (common) own.all.add(trace.common_ns(part, span.start_ns), trace.common_ns(part, span.end_ns));
    }
    return own;
  };
  std::vector<double> before, after, longer;
  for (const StepWork& work : works) {
    if (sums.is_incomplete(work.step)) continue;
    const StepWork own = of_every(work);
    before.push_back(between_ns(work.all.start_ns, own.all.start_ns));
    after.push_back(between_ns(own.all.end_ns, work.all.end_ns));
    longer.push_back(span_ns(work, common) - span_ns(own, common));
  }
  const auto before_ns = static_cast<int64_t>(median_of(before)), after_ns = static_cast<int64_t>(median_of(after));
  for (StepWork& work : works) {
    if (!sums.is_incomplete(work.step)) continue;
    StepWork own = of_every(work);
    work.estimated_ns = span_ns(own, common) + median_of(longer);
    if (common) work.all.start_ns = own.all.start_ns - before_ns, work.all.end_ns = own.all.end_ns + after_ns;
  }
  return true;
}

double gap_ns(const StepWork& before, const StepWork& after, bool common) {
  if (common) return apart_ns(before.all, after.all);
  double shortest = kNaN;
  for (const auto& [part, span] : before.by_part) {
    const auto next = after.by_part.find(part);
    if (next == after.by_part.end()) continue;
    const double ns = apart_ns(span, next->second);
    if (!(ns >= shortest)) shortest = ns;
  }
  return shortest;
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
    if (cells.kind[i] != CellKind::kOther || trace.slice_name(cells.at(i)).empty()) continue;
    const int32_t part = cells.part[i];
    const int64_t start = trace.common_ns(part, cells.start_ns[i]), end = trace.common_ns(part, cells.end_ns[i]);
    auto gap = std::ranges::partition_point(gaps, [&](const Between& g) { return g.to_ns <= start; });
    for (; gap != gaps.end() && gap->from_ns < end; ++gap)
      gap->phases[phase_name(trace.slice_name(cells.at(i)))].push_back(
          {std::max(start, gap->from_ns), std::min(end, gap->to_ns), part});
  }
}

// Returns the phases of a gap, the longest first. If rows of several names share a stretch, the name with the longest
// rows in total gets it. So a long checkpoint does not get the name of a short row in it.
std::vector<GapPhase> phases_of(const Phases& rows_by_name) {
  std::vector<std::pair<double, std::string_view>> order;
  for (const auto& [name, rows] : rows_by_name) {
    const double sum = sum_over<double>(rows, [](const Phase& row) { return between_ns(row.start_ns, row.end_ns); });
    order.emplace_back(-sum, name);
  }
  std::ranges::sort(order);
  std::vector<GapPhase> list;
  std::vector<Interval> covered;  // by the names so far
  for (const auto& [sum, name] : order) {
    const std::vector<Phase>& rows = rows_by_name.at(name);
    GapPhase phase{.name = std::string(name)};
    const int64_t before_ns = length_of(covered);
    std::map<int32_t, double> by_part;
    for (const Phase& row : rows) {
      covered.push_back({row.start_ns, row.end_ns});
      by_part[row.part] += between_ns(row.start_ns, row.end_ns);
    }
    phase.part = longest_part(by_part);
    covered = union_of(std::move(covered));
    phase.ns = length_of(covered) - before_ns;
    if (phase.ns > 0) list.push_back(std::move(phase));
  }
  sort_stably(list, std::greater(), &GapPhase::ns);
  return list;
}

// Finds the gaps between steps and their phases.
void find_gaps(const Trace& trace, const std::vector<StepWork>& works, std::vector<StepGap>& gaps) {
  const bool common = trace.comparable();
  std::vector<Between> between;
  std::vector<size_t> gap_of;  // for each of `between` its index in `gaps`
  for (size_t s = 1; s < works.size(); ++s) {
    if (works[s].step != works[s - 1].step + 1) continue;
    StepGap gap{works[s].step, gap_ns(works[s - 1], works[s], common), {}};
    if (std::isnan(gap.ns)) continue;
    if (common && gap.ns > 0) {
      between.push_back({works[s - 1].all.end_ns, works[s].all.start_ns, {}});
      gap_of.push_back(gaps.size());
    }
    gaps.push_back(std::move(gap));
  }
  collect_phases(trace, between);
  for (size_t i = 0; i < between.size(); ++i) gaps[gap_of[i]].phases = phases_of(between[i].phases);
}

// Finds which gaps are long, how gaps develop, and the means over all and over the usual ones.
void judge_gaps(const PipelineSums& sums, StepPeriods& out) {
  std::vector<double> all, spans, usual;
  for (const StepGap& gap : out.gaps) all.push_back(gap.ns);
  for (const StepSums& step : sums.steps) spans.push_back(step.span_ns());
  out.mean_ns = mean_of(all);
  out.course = course_of(all);
  const bool shaped = out.course.kind == CourseKind::kOnset || out.course.kind == CourseKind::kTrend ||
                      out.course.kind == CourseKind::kEvery;
  const double limit = median_of(all) + (kOutlierStep - 1) * median_of(spans);
  // An outlier overlaps its neighbours by a part of its own length.
  const auto next_to_outlier = [&](int32_t step) { return sums.is_outlier(step) || sums.is_outlier(step - 1); };
  for (size_t i = 0; i < all.size(); ++i)
    if (all.size() > 2 && all[i] > limit && !shaped) out.long_gaps.push_back(i);
    else if (all[i] >= 0 || !next_to_outlier(out.gaps[i].step)) usual.push_back(all[i]);
  if (!usual.empty()) out.usual_ns = mean_of(usual);
}

}  // namespace

int32_t longest_part(const std::map<int32_t, double>& by_part) {
  constexpr double kFarLonger = 2;
  std::pair<double, int32_t> longest{0, kUnknown}, next = longest;
  for (const auto& [part, ns] : by_part)
    if (ns > longest.first) next = std::exchange(longest, {ns, part});
    else if (ns > next.first) next = {ns, part};
  return longest.first >= kFarLonger * next.first ? longest.second : kUnknown;
}

bool StepPeriods::is_long(size_t gap) const { return std::ranges::binary_search(long_gaps, gap); }

double StepPeriods::beyond_ns(size_t gap) const {
  if (is_long(gap)) return gaps[gap].ns - usual_ns;
  const auto [low, high] = std::minmax(course.low, course.high);
  const bool two_levels = course.kind == CourseKind::kOnset || course.kind == CourseKind::kEvery;
  if (!two_levels || low > kNextToNothing * high || course.level[gap] < (low + high) / 2) return 0;
  return std::max(0.0, gaps[gap].ns - low);
}

StepPeriods step_periods(const Trace& trace, const PipelineSums& sums) {
  StepPeriods out;
  std::vector<StepWork> works = works_of(trace, !sums.incomplete.empty());
  const bool known = sums.incomplete.empty() || estimate_incomplete(trace, sums, works);
  for (const StepWork& work : works)
    if (known || !sums.is_incomplete(work.step))
      out.spans.push_back(
          {work.step, std::isnan(work.estimated_ns) ? span_ns(work, trace.comparable()) : work.estimated_ns});
  find_gaps(trace, works, out.gaps);
  // Where a rank was not recorded and no other one says when the step begins and ends, a gap may be its work.
  if (!known)
    std::erase_if(out.gaps,
                  [&](const StepGap& gap) { return sums.is_incomplete(gap.step) || sums.is_incomplete(gap.step - 1); });
  if (!out.gaps.empty()) judge_gaps(sums, out);
  return out;
}

}  // namespace stageline
