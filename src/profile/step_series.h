// A whole number that changes at points in time and holds in between: queue lengths, bytes per second.
//
//   value   │   ┌──┐
//           │┌──┘  └────┐           statistics over points count every change alike;
//           ││          └──── 0     those over time weigh a value by how long it held
//           └┴────────────────▶
#pragma once

#include <cstdint>
#include <vector>

#include "model/statistics.h"

namespace stageline {

struct StepSeries {
  std::vector<int64_t> time_ns;  // strictly ascending
  std::vector<int64_t> value;    // from time_ns[i] to time_ns[i + 1]; 0 before the first point

  size_t size() const { return time_ns.size(); }
  int64_t start_ns() const { return time_ns.front(); }  // asserts that there is a point
  int64_t end_ns() const { return time_ns.back(); }
};

// Changes by amount, in any order, become a series: all changes of one instant make one point.
struct StepChange {
  int64_t time_ns = 0;
  int64_t amount = 0;
};
StepSeries series_of(std::vector<StepChange> changes);

// Over the time between the first and the last point.
struct TimeStatistics {
  int64_t span_ns = 0;
  int64_t positive_ns = 0;  // value above 0
  double mean = NAN, p50 = NAN, p95 = NAN;
  int64_t max = 0;
};
// `positive_only`: the mean and the percentiles leave out the time at 0.
TimeStatistics time_statistics(const StepSeries& series, bool positive_only);

// How long the value was at least `least`, to the last point.
int64_t time_at_least(const StepSeries& series, int64_t least);

// The series with [from, to] as its span, which has to hold its points.
StepSeries stretched(StepSeries series, int64_t from_ns, int64_t to_ns);

struct StepBin {
  int64_t start_ns = 0, dur_ns = 0;
  double mean = 0;  // weighted by time
  int64_t max = 0;
};
// [from, to) cut into `count` equal bins (fewer when there are fewer nanoseconds), without those that are 0 throughout.
std::vector<StepBin> bins_of(const StepSeries& series, int64_t from_ns, int64_t to_ns, size_t count);

// What one row of a chart is cut into.
inline constexpr size_t kChartBins = 400;

}  // namespace stageline
