// A whole number that changes at points in time and is constant in between: queue lengths, bytes per second.
//
//   value   │   ┌──┐
//           │┌──┘  └────┐           statistics over points count every change alike;
//           ││          └──── 0     those over time weigh a value by how long it held
//           └┴────────────────▶
#pragma once

#include "model/statistics.h"

namespace stageline {

struct StepSeries {
  std::vector<int64_t> time_ns;  // strictly ascending
  std::vector<int64_t> value;    // from time_ns[i] to time_ns[i + 1]; the value is 0 before the first point

  size_t size() const { return time_ns.size(); }
  int64_t start_ns() const { return time_ns.front(); }  // expects (asserts) that there is a point
  int64_t end_ns() const { return time_ns.back(); }
};

// A change by an amount. Changes in any order become a series, in which all changes of one instant make one point.
struct StepChange {
  int64_t time_ns = 0;
  int64_t amount = 0;
};
StepSeries series_of(std::vector<StepChange> changes);

// Statistics over the time between the first and the last point.
struct TimeStatistics {
  int64_t span_ns = 0;
  int64_t positive_ns = 0;  // how long the value was above 0
  double mean = NAN, p50 = NAN, p95 = NAN;
  int64_t max = 0;
};
// With `positive_only`, the mean and the percentiles leave out the time when the value was 0.
TimeStatistics time_statistics(const StepSeries& series, bool positive_only);

// Returns how long the value was at least `least`, up to the last point.
int64_t time_at_least(const StepSeries& series, int64_t min);

// Returns the series extended to the span [from, to], which must contain its points.
StepSeries stretched(StepSeries series, int64_t from_ns, int64_t to_ns);

struct StepBin {
  int64_t start_ns = 0, dur_ns = 0;
  double mean = 0;  // weighted by time
  int64_t max = 0;
};
// Cuts [from, to) into `count` equal bins (fewer if there are fewer nanoseconds) and returns those that are not 0
// throughout.
std::vector<StepBin> bins_of(const StepSeries& series, int64_t from_ns, int64_t to_ns, size_t count);

// The number of bins in one row of a chart.
inline constexpr size_t kChartBins = 400;

// The number of points of a series in a report, where a chart is some hundred pixels wide and there is one for every
// device.
inline constexpr size_t kReportPoints = 300;

// Returns about `most` of `points` (ordered by time_ns) at most. Each of most / 2 equal stretches of time keeps its
// highest point by `height` and its last, so that peaks and levels are kept. All points are returned when there are no
// more than `most`. O(n).
template <class Point, class Height>
std::vector<Point> thin_series(const std::vector<Point>& points, size_t max, Height height) {
  if (points.size() <= max) return points;
  const size_t stretches = std::max<size_t>(1, max / 2);
  const double first = static_cast<double>(points.front().time_ns);
  const double span = std::max(1.0, static_cast<double>(points.back().time_ns) - first);
  const auto stretch_of = [&](const Point& p) {
    const double share = (static_cast<double>(p.time_ns) - first) / span;
    return std::min(stretches - 1, static_cast<size_t>(share * stretches));
  };
  std::vector<Point> kept;
  for (size_t i = 0; i < points.size();) {
    const size_t stretch = stretch_of(points[i]);
    size_t highest = i, end = i + 1;
    for (; end < points.size() && stretch_of(points[end]) == stretch; ++end)
      if (height(points[end]) > height(points[highest])) highest = end;
    kept.push_back(points[highest]);
    if (highest != end - 1) kept.push_back(points[end - 1]);
    i = end;
  }
  return kept;
}

}  // namespace stageline
