#include "pipeline/replay/schedule_numbers.h"

namespace stageline {

ScheduleNumbers schedule_numbers(const Schedule& schedule, const std::vector<std::vector<ReplayedCell>>& times) {
  ScheduleNumbers numbers;
  int64_t first = INT64_MAX, last = 0;
  for (const auto& rank : times)
    if (!rank.empty()) {
      first = std::min(first, rank.front().start_ns);
      last = std::max(last, rank.back().end_ns);
    }
  numbers.span_ns = std::max<int64_t>(0, last - std::min(first, last));
  for (size_t r = 0; r < times.size(); ++r) {
    RankNumbers own;
    int32_t held = 0, held_input = 0;
    for (size_t i = 0; i < times[r].size(); ++i) {
      own.busy_ns += times[r][i].end_ns - times[r][i].start_ns;
      const auto actions = schedule.ranks[r][i].actions();
      for (const Action& a : actions)
        if (a.kind == CellKind::kForward) {
          own.activations = std::max(own.activations, ++held);
          own.activations_input = std::max(own.activations_input, ++held_input);
        }
      for (const Action& a : actions) {
        held -= a.kind == CellKind::kBackward || a.kind == CellKind::kWeightGrad ? 1 : 0;
        held_input -= is_backward(a.kind) ? 1 : 0;
      }
    }
    own.span_bubble_ns = numbers.span_ns - own.busy_ns;
    if (!times[r].empty()) own.inner_bubble_ns = times[r].back().end_ns - times[r].front().start_ns - own.busy_ns;
    numbers.max_span_bubble_ns = std::max(numbers.max_span_bubble_ns, own.span_bubble_ns);
    numbers.max_inner_bubble_ns = std::max(numbers.max_inner_bubble_ns, own.inner_bubble_ns);
    numbers.max_activations = std::max(numbers.max_activations, own.activations);
    numbers.ranks.push_back(own);
  }
  return numbers;
}

Result<std::vector<std::vector<ReplayedCell>>> replay(const Schedule& schedule, const UnitCosts& costs) {
  ReplayCosts each;
  each.latency_ns = costs.latency_ns;
  each.cell_ns = [&](int32_t, const ScheduleCell& cell) { return costs.of(cell); };
  return replay(schedule, each);
}

}  // namespace stageline
