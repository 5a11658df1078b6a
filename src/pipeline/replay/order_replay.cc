#include "pipeline/replay/order_replay.h"

#include <algorithm>

namespace stageline {
namespace {

struct Mean {
  double sum_ns = 0, count = 0;
  void add(double ns) { sum_ns += ns, ++count; }
  double ns() const { return count > 0 ? sum_ns / count : 0; }
};

std::vector<int32_t> stages_of(const OrderGraph& graph, const RankLists& lists, size_t first) {
  std::vector<int32_t> stages;
  for (size_t l = 0; l + 1 < graph.list_begin.size(); ++l) stages.push_back(lists.lists[first + l].stage);
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

}  // namespace

OrderReplay::OrderReplay(const OrderGraph& graph, const RankLists& lists, size_t first)
    : graph_(graph), stages_(stages_of(graph, lists, first)) {
  std::vector<Mean> by_stage(number_costs(lists, first));
  std::array<Mean, kKinds> by_kind{};
  for (uint32_t u = 0; u < graph.units.size(); ++u) {
    by_stage[cost_index_[u]].add(graph.units[u].own_ns);
    by_kind[static_cast<size_t>(graph.units[u].kind)].add(graph.units[u].own_ns);
  }
  for (const Mean& mean : by_stage) stage_ns_.push_back(mean.ns());
  for (size_t k = 0; k < kKinds; ++k) kind_ns_[k] = by_kind[k].ns();
}

size_t OrderReplay::place_of(int32_t stage) const {
  return static_cast<size_t>(std::lower_bound(stages_.begin(), stages_.end(), stage) - stages_.begin());
}

// Numbers the (stage, chunk, kind): by a table, or where chunk numbers leave it mostly empty, in order.
size_t OrderReplay::number_costs(const RankLists& lists, size_t first) {
  const auto chunks = static_cast<size_t>(std::max(1, lists.chunks));
  std::vector<uint64_t> key;
  key.reserve(graph_.units.size());
  for (uint32_t l = 0; l + 1 < graph_.list_begin.size(); ++l) {
    const size_t place = place_of(lists.lists[first + l].stage);
    for (uint32_t u = graph_.list_begin[l]; u < graph_.list_begin[l + 1]; ++u)
      key.push_back((place * chunks + static_cast<size_t>(graph_.units[u].chunk)) * kKinds +
                    static_cast<size_t>(graph_.units[u].kind));
  }
  size_t count = stages_.size() * chunks * kKinds;
  if (count > graph_.units.size() * 16 + 64) {
    std::vector<uint64_t> used = key;
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    count = used.size();
    for (uint64_t& k : key) k = static_cast<uint64_t>(std::lower_bound(used.begin(), used.end(), k) - used.begin());
  }
  cost_index_.assign(key.begin(), key.end());
  return count;
}

void OrderReplay::without_messages(ReplayLevels& level_ns) const {
  const size_t ranks = graph_.list_begin.size() - 1;
  using Three = std::array<double, 3>;
  std::vector<Three> ends(graph_.units.size()), free_at(ranks);
  Three most{};
  for (const uint32_t u : graph_.order) {
    const OrderUnit& unit = graph_.units[u];
    Three at = free_at[unit.list];
    for (const uint32_t before : unit.after)
      if (before != kNoUnit)
        for (size_t k = 0; k < 3; ++k) at[k] = std::max(at[k], ends[before][k]);
    at[0] += kind_ns_[static_cast<size_t>(unit.kind)];
    at[1] += stage_ns_[cost_index_[u]];
    at[2] += unit.own_ns;
    ends[u] = free_at[unit.list] = at;
    for (size_t k = 0; k < 3; ++k) most[k] = std::max(most[k], at[k]);
  }
  std::copy(most.begin(), most.end(), level_ns.begin());
}

double OrderReplay::equal_costs(const std::vector<uint32_t>& order) const {
  return order_span_ns(graph_, order, [&](uint32_t u) { return equal_ns(u); }, 0);
}

void OrderReplay::with_messages(const std::vector<MessageTime>& messages, ReplayLevels& level_ns) const {
  std::vector<std::array<double, 2>> ends(graph_.units.size()), free_at(graph_.list_begin.size() - 1);
  level_ns[3] = level_ns[4] = 0;
  for (const uint32_t u : graph_.order) {
    const OrderUnit& unit = graph_.units[u];
    std::array<double, 2> at = free_at[unit.list];
    at[1] += messages[u].held_ns;
    for (size_t w = 0; w < 2; ++w)
      for (size_t k = 0; k < 2 && unit.after[w] != kNoUnit; ++k)
        at[k] = std::max(at[k], ends[unit.after[w]][k] + messages[u].after_ns[w]);
    for (double& end : at) end += unit.own_ns;
    ends[u] = free_at[unit.list] = at;
    for (size_t k = 0; k < 2; ++k) level_ns[3 + k] = std::max(level_ns[3 + k], at[k]);
  }
}

UnitWaits OrderReplay::waits(const std::vector<MessageTime>& messages) const {
  const size_t ranks = graph_.list_begin.size() - 1;
  UnitWaits out{std::vector<ReplayLevels>(graph_.units.size()), std::vector<ReplayLevels>(ranks)};
  std::vector<ReplayLevels> ends(graph_.units.size()), free_at(ranks);
  ReplayLevels most{};
  for (const uint32_t u : graph_.order) {
    const OrderUnit& unit = graph_.units[u];
    ReplayLevels at = free_at[unit.list];
    at[4] += messages[u].held_ns;
    for (size_t w = 0; w < 2; ++w)
      for (size_t k = 0; k < at.size() && unit.after[w] != kNoUnit; ++k)
        at[k] = std::max(at[k], ends[unit.after[w]][k] + (k < 3 ? 0 : messages[u].after_ns[w]));
    for (size_t k = 0; k < at.size(); ++k) out.before[u][k] = at[k] - free_at[unit.list][k];
    at[0] += kind_ns_[static_cast<size_t>(unit.kind)];
    at[1] += stage_ns_[cost_index_[u]];
    for (size_t k = 2; k < at.size(); ++k) at[k] += unit.own_ns;
    ends[u] = free_at[unit.list] = at;
    for (size_t k = 0; k < at.size(); ++k) most[k] = std::max(most[k], at[k]);
  }
  for (size_t l = 0; l < ranks; ++l)
    for (size_t k = 0; k < most.size(); ++k) out.after[l][k] = most[k] - free_at[l][k];
  return out;
}

}  // namespace stageline
