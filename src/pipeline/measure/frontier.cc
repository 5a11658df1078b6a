#include "pipeline/measure/frontier.h"

#include "model/theory.h"

namespace stageline {
namespace {

struct Furthest {
  std::array<double, kFrontierPhases> ns{};
  std::array<int32_t, kFrontierPhases> stage{};
  bool any = false;

  void reach(const std::array<double, kFrontierPhases>& at, int32_t of_stage) {
    for (size_t k = 0; k < kFrontierPhases; ++k)
      if (!any || at[k] > ns[k] || (at[k] == ns[k] && of_stage < stage[k])) ns[k] = at[k], stage[k] = of_stage;
    any = true;
  }
};

}  // namespace

std::string_view frontier_phase_name(FrontierPhase phase) {
  static constexpr auto kTexts = texts_by<FrontierPhase::kAfter>({"before", "warm-up", "steady", "cool-down", "after"});
  return kTexts[phase];
}

Frontier frontier_of(const Trace& trace, const std::vector<int32_t>& without) {
  const Cells& cells = trace.cells;
  std::map<std::pair<int32_t, int32_t>, Furthest> pipelines;  // key: step, replica
  size_t i = 0;
  for (const RankPhases& rank : rank_phases(trace)) {
    if (std::ranges::binary_search(without, rank.step)) continue;
    const Part& part = trace.parts[rank.part];
    if (part.stage == kUnknown) continue;
    // Phases and cells are both ordered by step, then rank, so one pass over the cells serves all ranks.
    const auto key = [&](size_t cell) { return std::pair(cells.step[cell], cells.part[cell]); };
    const std::pair<int32_t, int32_t> wanted(rank.step, rank.part);
    while (i < cells.size() && key(i) < wanted) ++i;
    int64_t first = rank.start_ns, last = rank.end_ns;
    for (; i < cells.size() && key(i) == wanted; ++i) {
      if (is_message(cells.kind[i])) continue;
      first = std::min(first, cells.start_ns[i]);
      last = std::max(last, cells.end_ns[i]);
    }
    std::array<double, kFrontierPhases> at{};
    const int64_t ends[kFrontierPhases] = {rank.start_ns, rank.steady_ns, rank.cool_down_ns, rank.end_ns, last};
    for (size_t k = 0; k < kFrontierPhases; ++k) at[k] = between_ns(first, ends[k]);
    pipelines[{rank.step, part.dp}].reach(at, part.stage);
  }
  Frontier out;
  std::array<std::map<int32_t, int64_t>, kFrontierPhases> leads;
  for (const auto& [place, furthest] : pipelines) {
    ++out.pipelines;
    double before = 0;
    for (size_t k = 0; k < kFrontierPhases; ++k) {
      out.phases[k].exposed_ns += furthest.ns[k] - before;
      before = furthest.ns[k];
      ++leads[k][furthest.stage[k]];
    }
  }
  if (out.pipelines == 0) return out;
  const double count = out.pipelines;
  for (size_t k = 0; k < kFrontierPhases; ++k) {
    out.phases[k].exposed_ns /= count;
    int64_t max = 0;
    for (const auto& [stage, times] : leads[k])
      if (times > max) max = times, out.phases[k].stage = stage;
    out.phases[k].stage_share = max / count;
  }
  return out;
}

}  // namespace stageline
