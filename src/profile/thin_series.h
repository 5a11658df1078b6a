// Takes fewer points of a long series, for tables and charts that are not read point by point.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stageline {

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
