#include "pipeline/replay/order_graph.h"

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
  sort_unique(stages);
  return stages;
}

}  // namespace

OrderReplay::OrderReplay(const OrderGraph& graph, const RankLists& lists, size_t first)
    : graph_(graph), stages_(stages_of(graph, lists, first)) {
  std::vector<Mean> by_stage(number_costs(lists, first));
  ByEnum<CellKind, Mean, kKinds> by_kind{};
  for (uint32_t u = 0; u < graph.units.size(); ++u) {
    by_stage[cost_index_[u]].add(graph.units[u].own_ns);
    by_kind[graph.units[u].kind].add(graph.units[u].own_ns);
  }
  for (const Mean& mean : by_stage) stage_ns_.push_back(mean.ns());
  for (size_t k = 0; k < kKinds; ++k) kind_ns_[k] = by_kind[k].ns();
}

size_t OrderReplay::place_of(int32_t stage) const { return std::ranges::lower_bound(stages_, stage) - stages_.begin(); }

// Numbers each (stage, chunk, kind): by a table, or, where chunk numbers would leave a table mostly empty, in sorted
// order.
size_t OrderReplay::number_costs(const RankLists& lists, size_t first) {
  const size_t chunks = std::max(1, lists.chunks);
  std::vector<uint64_t> key;
  key.reserve(graph_.units.size());
  for (uint32_t l = 0; l + 1 < graph_.list_begin.size(); ++l) {
    const size_t place = place_of(lists.lists[first + l].stage);
    for (uint32_t u = graph_.list_begin[l]; u < graph_.list_begin[l + 1]; ++u)
      key.push_back((place * chunks + graph_.units[u].chunk) * kKinds + static_cast<size_t>(graph_.units[u].kind));
  }
  size_t count = stages_.size() * chunks * kKinds;
  if (count > graph_.units.size() * 16 + 64) {
    std::vector<uint64_t> used = key;
    sort_unique(used);
    count = used.size();
    for (uint64_t& k : key) k = std::ranges::lower_bound(used, k) - used.begin();
  }
  cost_index_.assign(key.begin(), key.end());
  return count;
}

void OrderReplay::without_messages(ReplayLevels& level_ns) const {
  const auto cost = [&](uint32_t u) { return std::array{equal_ns(u), mean_ns(u), graph_.units[u].own_ns}; };
  const auto last = replay_units<3>(graph_, graph_.order, kHeldByNothing, kArrivesAtOnce, kBeginsUnseen, cost).last;
  std::ranges::copy(last, level_ns.begin());
}

double OrderReplay::equal_costs(const std::vector<uint32_t>& order) const {
  return order_span_ns(graph_, order, [&](uint32_t u) { return equal_ns(u); }, 0);
}

void OrderReplay::with_messages(const std::vector<MessageTime>& messages, ReplayLevels& level_ns) const {
  const auto held = [&](uint32_t u, auto& at) { at[1] += messages[u].held_ns; };
  const auto arrives = [&](uint32_t u, size_t w, double end_ns, size_t) { return end_ns + messages[u].after_ns[w]; };
  const auto cost = [&](uint32_t u) { return std::array{graph_.units[u].own_ns, graph_.units[u].own_ns}; };
  const auto last = replay_units<2>(graph_, graph_.order, held, arrives, kBeginsUnseen, cost).last;
  std::ranges::copy(last, level_ns.begin() + 3);
}

UnitWaits OrderReplay::waits(const std::vector<MessageTime>& messages) const {
  constexpr size_t kLevels = std::tuple_size_v<ReplayLevels>;
  UnitWaits out{std::vector<ReplayLevels>(graph_.units.size()),
                std::vector<ReplayLevels>(graph_.list_begin.size() - 1)};
  const auto held = [&](uint32_t u, auto& at) { at[4] += messages[u].held_ns; };
  const auto arrives = [&](uint32_t u, size_t w, double end_ns, size_t k) {
    return end_ns + (k < 3 ? 0 : messages[u].after_ns[w]);
  };
  const auto begins = [&](uint32_t u, const ReplayLevels& before, const ReplayLevels& at) {
    for (size_t k = 0; k < kLevels; ++k) out.before[u][k] = at[k] - before[k];
  };
  const auto cost = [&](uint32_t u) {
    const double own = graph_.units[u].own_ns;
    return ReplayLevels{equal_ns(u), mean_ns(u), own, own, own};
  };
  const UnitEnds<kLevels> ends = replay_units<kLevels>(graph_, graph_.order, held, arrives, begins, cost);
  for (size_t l = 0; l < out.after.size(); ++l)
    for (size_t k = 0; k < kLevels; ++k) out.after[l][k] = ends.last[k] - ends.free_at[l][k];
  return out;
}

}  // namespace stageline
