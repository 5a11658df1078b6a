#include "pipeline/order/schedule_places.h"

namespace stageline {

bool has_pairs(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const RankOrder& order) {
    return std::ranges::any_of(order, [](const ScheduleCell& cell) { return cell.overlapped(); });
  });
}

void order_pairs_as(const SchedulePlaces& places, int32_t stage, std::vector<WorkToken>& tokens) {
  constexpr int32_t kApart = 2;  // a weight gradient may be between the two
  for (size_t t = 0; t + 1 < tokens.size(); ++t) {
    if (!tokens[t].fused || !tokens[t + 1].fused) continue;
    WorkToken &first = tokens[t], &second = tokens[++t];
    if (first.micro_batch == kUnknown || second.micro_batch == kUnknown) continue;
    const int32_t a = places.find(stage, first, 0), b = places.find(stage, second, 0);
    if (a != kUnknown && b != kUnknown && b < a && a - b <= kApart) std::swap(first, second);
  }
}

Schedule fuse_pairs(Schedule schedule, const RankLists& lists) {
  const bool any = std::ranges::any_of(lists.tokens, [](const WorkToken& t) { return t.fused; });
  if (!any || has_pairs(schedule)) return schedule;
  const SchedulePlaces places(schedule);
  std::vector<int64_t> of_stage(schedule.ranks.size(), 0);
  // For each stage and place, how many lists run it as one with the next place.
  std::vector<std::vector<int64_t>> together;
  for (const RankOrder& order : schedule.ranks) together.emplace_back(order.size(), 0);
  for (const RankList& list : lists.lists) {
    if (list.micro_batches != schedule.sizes.micro_batches) continue;
    const size_t s = list.stage;
    ++of_stage[s];
    for (size_t t = list.begin; t + 1 < list.end; ++t) {
      if (!lists.tokens[t].fused || !lists.tokens[t + 1].fused) continue;
      const int32_t a = places.find(list.stage, lists.tokens[t], t - list.begin);
      const int32_t b = places.find(list.stage, lists.tokens[t + 1], t + 1 - list.begin);
      ++t;  // skips the pair's second half
      if (a != kUnknown && b != kUnknown && (a + 1 == b || b + 1 == a)) ++together[s][std::min(a, b)];
    }
  }
  for (size_t s = 0; s < schedule.ranks.size(); ++s) {
    const RankOrder& order = schedule.ranks[s];
    RankOrder fused;
    fused.reserve(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      if (i + 1 < order.size() && together[s][i] * 2 > of_stage[s]) {
        Action first = order[i].actions()[0], second = order[i + 1].actions()[0];
        if (second.kind == CellKind::kForward) std::swap(first, second);
        if (first.kind == CellKind::kForward && is_backward(second.kind)) {
          fused.emplace_back(first, second);
          ++i;
          continue;
        }
      }
      fused.push_back(order[i]);
    }
    schedule.ranks[s] = std::move(fused);
  }
  return schedule;
}

}  // namespace stageline
