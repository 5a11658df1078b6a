// Time on the chart: where it starts, which steps it has, and the ticks.
#include "exporters/chart/chart_layout.h"

namespace stageline {

ChartTime chart_time(const Trace& trace) {
  const Cells& cells = trace.cells;
  ChartTime time;
  time.shift_ns.assign(trace.parts.size(), 0);
  std::vector<int64_t> first(trace.parts.size(), INT64_MAX), last(trace.parts.size(), INT64_MIN);
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t p = cells.part[i];
    first[p] = std::min(first[p], cells.start_ns[i]);
    last[p] = std::max(last[p], std::max(cells.start_ns[i], cells.end_ns[i]));
  }
  // Ranks that count from zeros of their own keep them while the zeros are comparable (the start of the job or of a
  // step). The chart then still shows the staircase of the pipeline. If the zeros differ by more than the longest rank
  // lasts (as with hours since boot), the picture would be nearly empty. Then each row starts at its first cell.
  if (trace.clock == ClockState::kPerRank) {
    int64_t longest = 0, earliest = INT64_MAX, latest = INT64_MIN;
    for (size_t p = 0; p < first.size(); ++p) {
      if (first[p] > last[p]) continue;
      longest = std::max(longest, last[p] - first[p]);
      earliest = std::min(earliest, first[p]);
      latest = std::max(latest, first[p]);
    }
    if (earliest < latest && latest - earliest > longest)
      for (size_t p = 0; p < first.size(); ++p)
        if (first[p] <= last[p]) time.shift_ns[p] = first[p] - earliest;
  }
  std::map<int32_t, ChartTime::Step> steps;
  time.start_ns = INT64_MAX;
  time.end_ns = INT64_MIN;
  for (size_t i = 0; i < cells.size(); ++i) {
    const int64_t shift = time.shift_ns[cells.part[i]];
    const int64_t start = cells.start_ns[i] - shift, end = std::max(start, cells.end_ns[i] - shift);
    time.start_ns = std::min(time.start_ns, start);
    time.end_ns = std::max(time.end_ns, end);
    const auto [it, fresh] = steps.try_emplace(cells.step[i], ChartTime::Step{cells.step[i], start, end});
    it->second.start_ns = std::min(it->second.start_ns, start);
    it->second.end_ns = std::max(it->second.end_ns, end);
  }
  for (const auto& [number, step] : steps) time.steps.push_back(step);
  sort_stably(time.steps, [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  return time;
}

std::vector<ChartTick> chart_ticks(int64_t span_ns, double width_px, double min_gap_px) {
  const double span = std::max<int64_t>(span_ns, 1);
  struct Unit {
    double ns;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}, {60e9, "min"}, {3600e9, "h"}};
  // Takes the largest unit that fits into the span at least once. Minutes and hours must fit thirty times: "600 s"
  // reads better than "10 min".
  const Unit* unit = &kUnits[0];
  for (const Unit& u : kUnits)
    if (span >= u.ns * (u.ns >= 60e9 ? 30 : 1)) unit = &u;
  const double min = min_gap_px / width_px * span / unit->ns;  // in that unit
  double step = 0;
  if (unit->ns >= 60e9) {
    for (const double s : {1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0})
      if (step == 0 && s >= min) step = s;
  }
  if (step == 0) {
    const double power = std::pow(10, std::floor(std::log10(min)));
    for (const double s : {1.0, 2.0, 5.0, 10.0})
      if (step == 0 && s * power >= min * (1 - 1e-9)) step = s * power;
  }
  if (unit->ns == 1) step = std::max(step, 1.0);  // there is nothing smaller than a nanosecond
  const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  std::vector<ChartTick> ticks;
  for (int64_t k = 0;; ++k) {
    const double at = k * step;
    if (at * unit->ns > span * (1 + 1e-9)) break;
    ticks.push_back({at * unit->ns / span * width_px, fixed(at, decimals) + "\u202f" + unit->name});
  }
  return ticks;
}

}  // namespace stageline
