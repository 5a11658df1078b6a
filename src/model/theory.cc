#include "model/theory.h"

namespace stageline {

std::vector<RankPhases> rank_phases(const Trace& trace) {
  const Cells& cells = trace.cells;
  std::vector<RankPhases> all;
  for (size_t i = 0; i < cells.size();) {
    RankPhases own{cells.step[i], cells.part[i], INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN};
    for (; i < cells.size() && cells.step[i] == own.step && cells.part[i] == own.part; ++i) {
      const CellKind kind = cells.kind[i];
      if (!is_compute(kind)) continue;
      const bool both = kind == CellKind::kForwardBackward;
      own.start_ns = std::min(own.start_ns, cells.start_ns[i]);
      own.end_ns = std::max(own.end_ns, cells.end_ns[i]);
      if (is_backward(kind) || both) own.steady_ns = std::min(own.steady_ns, cells.start_ns[i]);
      if (kind == CellKind::kForward || both) own.cool_down_ns = std::max(own.cool_down_ns, cells.end_ns[i]);
    }
    if (own.step == kUnknown || own.steady_ns == INT64_MAX || own.cool_down_ns == INT64_MIN) continue;
    own.cool_down_ns = std::max(own.cool_down_ns, own.steady_ns);
    all.push_back(own);
  }
  return all;
}

std::vector<PipelinePhases> pipeline_phases(const Trace& trace, const std::vector<RankPhases>& ranks) {
  std::map<std::pair<int32_t, int32_t>, PipelinePhases> by_place;
  for (RankPhases own : ranks) {
    for (int64_t* at : {&own.start_ns, &own.steady_ns, &own.cool_down_ns, &own.end_ns})
      *at = trace.common_ns(own.part, *at);
    const int32_t dp = trace.parts[own.part].dp;
    const auto [it, fresh] = by_place.try_emplace(
        {own.step, dp}, PipelinePhases{own.step, dp, own.start_ns, own.steady_ns, own.cool_down_ns, own.end_ns});
    PipelinePhases& all = it->second;
    all.start_ns = std::min(all.start_ns, own.start_ns);
    all.steady_ns = std::min(all.steady_ns, own.steady_ns);
    all.cool_down_ns = std::max(all.cool_down_ns, own.cool_down_ns);
    all.end_ns = std::max(all.end_ns, own.end_ns);
  }
  return mapped<PipelinePhases>(by_place, [&](const auto& entry) { return entry.second; });
}

}  // namespace stageline
