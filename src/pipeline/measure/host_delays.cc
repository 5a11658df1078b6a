#include "pipeline/measure/host_delays.h"

#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kTimesUsual = 5;      // minimum delay of a pause, in upper quartiles of its sort
constexpr double kLateShare = 0.02;    // minimum late_ns of a late launch, as a share of the rank's usual cell
constexpr double kLateTimesUsual = 3;  // and in multiples of the delay of other ranks
constexpr double kMinLateNs = 10'000;
constexpr size_t kSorts = 3;  // what a cell waited for last: its own rank, a forward message, a backward message

double nearest_quantile(std::span<double> values, double share) {
  if (values.empty()) return 0;
  const auto k = static_cast<size_t>(share * (values.size() - 1));
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return values[k];
}

size_t sort_of(const StepGraph& graph, uint32_t op) {
  uint32_t last = kNoCell;
  for (const uint32_t on : graph.waits(op))
    if (last == kNoCell || graph.ended_ns(on) >= graph.ended_ns(last)) last = on;
  if (last == kNoCell || !is_message(graph.kind[last])) return 0;
  return is_of_forward(graph.kind[last]) ? 1 : 2;
}

}  // namespace

HostDelays host_delays(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage) {
  const auto tells = [&](uint32_t op) {
    return graph.cell[op] == kNoCell || (coverage.fed(graph.cell[op]) && !coverage.repeated(graph.cell[op]));
  };
  HostDelays out;
  out.ranks.resize(trace.parts.size());
  std::vector<uint8_t> sort(graph.size(), UINT8_MAX);
  // All values are in one list, part by part, sort by sort: lists that grow one by one take twice the memory, half a
  // gigabyte for ten thousand ranks. `begin` has their ends until they are filled from behind.
  std::vector<size_t> begin(trace.parts.size() * kSorts + 1, 0), cell_begin(trace.parts.size() + 1, 0);
  std::vector<uint32_t> first(trace.parts.size());
  for (const GraphStep& step : graph.steps) {
    if (!step.counts) continue;
    std::ranges::fill(first, UINT32_MAX);
    for (uint32_t i = step.begin; i < step.end; ++i) {
      if (!is_compute(graph.kind[i])) continue;
      uint32_t& own = first[graph.part[i]];
      if (own == UINT32_MAX || graph.start_ns[i] < graph.start_ns[own]) own = i;
    }
    for (uint32_t i = step.begin; i < step.end; ++i) {
      const size_t part = graph.part[i];
      if (!is_compute(graph.kind[i])) continue;
      ++cell_begin[part];
      if (first[part] == i || !tells(i)) continue;
      sort[i] = static_cast<uint8_t>(sort_of(graph, i));
      ++begin[part * kSorts + sort[i]];
    }
  }
  std::partial_sum(cell_begin.begin(), cell_begin.end(), cell_begin.begin());
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<double> values(cell_begin.back());
  for (const GraphStep& step : graph.steps)
    for (uint32_t i = step.begin; step.counts && i < step.end; ++i)
      if (is_compute(graph.kind[i])) values[--cell_begin[graph.part[i]]] = graph.dur_ns[i];
  std::vector<std::array<double, kSorts>> min(trace.parts.size());
  std::vector<double> usual_cell(trace.parts.size()), usual_late;
  for (size_t p = 0; p < usual_cell.size(); ++p)
    usual_cell[p] = nearest_quantile(std::span(values).subspan(cell_begin[p], cell_begin[p + 1] - cell_begin[p]), 0.5);
  for (const GraphStep& step : graph.steps)
    for (uint32_t i = step.begin; i < step.end; ++i)
      if (sort[i] != UINT8_MAX) values[--begin[graph.part[i] * kSorts + sort[i]]] = graph.delay_ns[i];
  const auto of = [&](size_t from, size_t to) {
    return std::span(values).subspan(begin[from], begin[to] - begin[from]);
  };
  for (size_t p = 0; p < usual_cell.size(); ++p) {
    for (size_t s = p * kSorts; s < (p + 1) * kSorts; ++s)
      min[p][s - p * kSorts] =
          std::max(kPauseShare * usual_cell[p], kTimesUsual * nearest_quantile(of(s, s + 1), 0.75));
    const std::span<double> all = of(p * kSorts, (p + 1) * kSorts);
    out.ranks[p].cells = all.size();
    if (all.empty()) continue;
    out.ranks[p].late_ns = std::max(0.0, nearest_quantile(all, 0.25));
    usual_late.push_back(out.ranks[p].late_ns);
  }
  if (usual_late.empty()) return out;
  out.usual_late_ns = median_of(std::move(usual_late));
  for (size_t p = 0; p < usual_cell.size(); ++p) {
    const double late = out.ranks[p].late_ns;
    out.ranks[p].late =
        late >= kMinLateNs && late >= kLateShare * usual_cell[p] && late >= kLateTimesUsual * out.usual_late_ns;
  }
  for (const GraphStep& step : graph.steps)
    for (uint32_t i = step.begin; i < step.end; ++i) {
      const size_t part = graph.part[i];
      if (sort[i] == UINT8_MAX || !(graph.delay_ns[i] > 0) || graph.delay_ns[i] < min[part][sort[i]]) continue;
      out.ranks[part].pause_ns += graph.delay_ns[i] - out.ranks[part].late_ns;
      out.ranks[part].pause_at_ns.push_back(step.start_ns + graph.start_ns[i]);
    }
  for (RankDelays& rank : out.ranks) std::ranges::sort(rank.pause_at_ns);
  return out;
}

}  // namespace stageline
