#include "pipeline/measure/host_delays.h"

#include <algorithm>
#include <array>

#include "model/stage_costs.h"

namespace stageline {
namespace {

constexpr double kTimesUsual = 5;      // least delay of a pause, in upper quartiles of its sort
constexpr double kLateShare = 0.02;    // least late_ns of a late launch, as a share of the rank's usual cell
constexpr double kLateTimesUsual = 3;  // and in multiples of what other ranks have
constexpr double kLeastLateNs = 10'000;
constexpr size_t kSorts = 3;  // what a cell waited for last: its own rank, a forward message, a backward message

double nearest_quantile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto k = static_cast<size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k), values.end());
  return values[k];
}

size_t sort_of(const StepGraph& graph, uint32_t op) {
  uint32_t last = kNoCell;
  for (const uint32_t on : graph.waits(op))
    if (last == kNoCell || graph.ended_ns(on) >= graph.ended_ns(last)) last = on;
  if (last == kNoCell || !is_message(graph.kind[last])) return 0;
  return graph.kind[last] == CellKind::kRecvForward || graph.kind[last] == CellKind::kSendForward ? 1 : 2;
}

}  // namespace

HostDelays host_delays(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage) {
  const auto tells = [&](uint32_t op) {
    return graph.cell[op] == kNoCell || (coverage.fed(graph.cell[op]) && !coverage.repeated(graph.cell[op]));
  };
  HostDelays out;
  out.ranks.resize(trace.parts.size());
  out.pause_of_op.assign(graph.size(), 0);
  std::vector<uint8_t> sort(graph.size(), UINT8_MAX);
  std::vector<std::array<std::vector<double>, kSorts>> delays(trace.parts.size());
  std::vector<std::vector<double>> durations(trace.parts.size());
  std::vector<uint32_t> first(trace.parts.size());
  for (const GraphStep& step : graph.steps) {
    if (!step.counts) continue;
    std::fill(first.begin(), first.end(), UINT32_MAX);
    for (uint32_t i = step.begin; i < step.end; ++i) {
      if (!is_compute(graph.kind[i])) continue;
      uint32_t& own = first[graph.part[i]];
      if (own == UINT32_MAX || graph.start_ns[i] < graph.start_ns[own]) own = i;
    }
    for (uint32_t i = step.begin; i < step.end; ++i) {
      const auto part = static_cast<size_t>(graph.part[i]);
      if (!is_compute(graph.kind[i])) continue;
      durations[part].push_back(graph.dur_ns[i]);
      if (first[part] == i || !tells(i)) continue;
      sort[i] = static_cast<uint8_t>(sort_of(graph, i));
      delays[part][sort[i]].push_back(graph.delay_ns[i]);
    }
  }
  std::vector<std::array<double, kSorts>> least(trace.parts.size());
  std::vector<double> usual_cell(trace.parts.size()), usual_late;
  for (size_t p = 0; p < delays.size(); ++p) {
    usual_cell[p] = nearest_quantile(durations[p], 0.5);
    std::vector<double> all;
    for (size_t s = 0; s < kSorts; ++s) {
      all.insert(all.end(), delays[p][s].begin(), delays[p][s].end());
      least[p][s] = std::max(kPauseShare * usual_cell[p], kTimesUsual * nearest_quantile(delays[p][s], 0.75));
    }
    out.ranks[p].cells = static_cast<int64_t>(all.size());
    if (all.empty()) continue;
    out.ranks[p].late_ns = std::max(0.0, nearest_quantile(all, 0.25));
    usual_late.push_back(out.ranks[p].late_ns);
  }
  if (usual_late.empty()) return out;
  out.usual_late_ns = median_of(std::move(usual_late));
  for (size_t p = 0; p < delays.size(); ++p) {
    const double late = out.ranks[p].late_ns;
    out.ranks[p].late =
        late >= kLeastLateNs && late >= kLateShare * usual_cell[p] && late >= kLateTimesUsual * out.usual_late_ns;
  }
  for (const GraphStep& step : graph.steps)
    for (uint32_t i = step.begin; i < step.end; ++i) {
      const auto part = static_cast<size_t>(graph.part[i]);
      if (sort[i] == UINT8_MAX || !(graph.delay_ns[i] > 0) || graph.delay_ns[i] < least[part][sort[i]]) continue;
      out.pause_of_op[i] = graph.delay_ns[i] - out.ranks[part].late_ns;
      out.ranks[part].pause_ns += out.pause_of_op[i];
      out.ranks[part].pause_at_ns.push_back(step.start_ns + graph.start_ns[i]);
    }
  for (RankDelays& rank : out.ranks) std::sort(rank.pause_at_ns.begin(), rank.pause_at_ns.end());
  return out;
}

}  // namespace stageline
