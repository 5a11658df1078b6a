#include "profile/step_series.h"

namespace stageline {

StepSeries series_of(std::vector<StepChange> changes) {
  std::ranges::sort(changes, {}, &StepChange::time_ns);
  StepSeries series;
  int64_t value = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    value += changes[i].amount;
    if (i + 1 < changes.size() && changes[i + 1].time_ns == changes[i].time_ns) continue;
    series.time_ns.push_back(changes[i].time_ns);
    series.value.push_back(value);
  }
  return series;
}

TimeStatistics time_statistics(const StepSeries& series, bool positive_only) {
  TimeStatistics out;
  if (series.size() == 0) return out;
  std::vector<std::pair<int64_t, int64_t>> held;  // (value, how long it held)
  held.reserve(series.size());
  double area = 0;
  int64_t weight = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    out.max = std::max(out.max, series.value[i]);
    if (i + 1 == series.size()) break;
    const int64_t dur = series.time_ns[i + 1] - series.time_ns[i];
    out.span_ns += dur;
    if (series.value[i] > 0) out.positive_ns += dur;
    if (positive_only && series.value[i] <= 0) continue;
    held.emplace_back(series.value[i], dur);
    area += series.value[i] * static_cast<double>(dur);
    weight += dur;
  }
  if (weight == 0) return out;
  out.mean = area / weight;
  std::ranges::sort(held);
  const auto percentile = [&](double p) {
    const double wanted = p * weight;
    int64_t passed = 0;
    for (const auto& [value, dur] : held) {
      passed += dur;
      if (passed >= wanted) return static_cast<double>(value);
    }
    return static_cast<double>(held.back().first);
  };
  out.p50 = percentile(0.5);
  out.p95 = percentile(0.95);
  return out;
}

StepSeries stretched(StepSeries series, int64_t from_ns, int64_t to_ns) {
  if (series.size() == 0 || series.start_ns() > from_ns) {
    series.time_ns.insert(series.time_ns.begin(), from_ns);
    series.value.insert(series.value.begin(), 0);
  }
  if (series.end_ns() < to_ns) {
    series.time_ns.push_back(to_ns);
    series.value.push_back(series.value.back());
  }
  return series;
}

int64_t time_at_least(const StepSeries& series, int64_t min) {
  int64_t sum = 0;
  for (size_t i = 0; i + 1 < series.size(); ++i)
    if (series.value[i] >= min) sum += series.time_ns[i + 1] - series.time_ns[i];
  return sum;
}

std::vector<StepBin> bins_of(const StepSeries& series, int64_t from_ns, int64_t to_ns, size_t count) {
  std::vector<StepBin> bins;
  if (to_ns <= from_ns || series.size() == 0) return bins;
  const int64_t span = to_ns - from_ns;
  const auto wanted = std::min<int64_t>(count, span);
  const auto edge = [&](int64_t k) { return from_ns + static_cast<int64_t>(static_cast<__int128>(span) * k / wanted); };
  size_t at = 0;  // the first point after the bin's start
  int64_t value = 0;
  while (at < series.size() && series.time_ns[at] <= from_ns) value = series.value[at++];
  for (int64_t k = 0; k < wanted; ++k) {
    const int64_t start = edge(k), end = edge(k + 1);
    StepBin bin{start, end - start, 0, 0};
    double area = 0;
    int64_t since = start;
    while (true) {
      const bool changes = at < series.size() && series.time_ns[at] < end;
      const int64_t until = changes ? series.time_ns[at] : end;
      if (until > since) {
        area += value * static_cast<double>(until - since);
        bin.max = std::max(bin.max, value);
      }
      since = until;
      if (!changes) break;
      value = series.value[at++];
    }
    bin.mean = area / bin.dur_ns;
    if (bin.max > 0) bins.push_back(bin);
  }
  return bins;
}

}  // namespace stageline
