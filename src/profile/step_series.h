// A whole number that changes at points in time and is constant in between: queue lengths, bytes per second.
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

}  // namespace stageline
