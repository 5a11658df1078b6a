// Replays the order that ran, adding one real input after the other (pipeline/measure/waterfall.h explains the levels).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/by_enum.h"
#include "pipeline/replay/order_graph.h"

namespace stageline {

// The end of the last unit, in ns from 0, for each level T0 … T4.
using ReplayLevels = std::array<double, 5>;

// The time for which messages delayed one unit.
struct MessageTime {
  double held_ns = 0;       // after its rank was free and the input was there: its rank still sat in the receive
  double after_ns[2] = {};  // after the end of each of the two units it waits for
};

// The waiting time of ranks, in each replay T0 … T4.
struct UnitWaits {
  std::vector<ReplayLevels> before;  // for each unit, since its rank was free
  std::vector<ReplayLevels> after;   // after the last unit of each list, until the replay's end
};

// The result of replay_units() for K worlds, in ns from 0: when each list is finished, and when everything is.
template <size_t K>
struct UnitEnds {
  std::vector<std::array<double, K>> free_at;
  std::array<double, K> last{};
};

// Replays units in the given `order`, each after everything it waits for, in K worlds at a time:
//
//   ready = held(unit, end of the unit before it in its list)
//   ready = max(ready, arrives(unit, w, end of after[w], world))   for each unit after[w] that it waits for
//   begins(unit, end of the unit before, ready);   end = ready + cost(unit)
//
// O(units · K).
template <size_t K, class Held, class Arrives, class Begins, class Cost>
UnitEnds<K> replay_units(const OrderGraph& graph, const std::vector<uint32_t>& order, const Held& held,
                         const Arrives& arrives, const Begins& begins, const Cost& cost) {
  using Worlds = std::array<double, K>;
  UnitEnds<K> out{std::vector<Worlds>(graph.list_begin.size() - 1)};
  std::vector<Worlds> ends(graph.units.size());
  for (const uint32_t u : order) {
    const OrderUnit& unit = graph.units[u];
    Worlds& before = out.free_at[unit.list];
    Worlds at = before;
    held(u, at);
    for (size_t w = 0; w < std::size(unit.after); ++w)
      if (unit.after[w] != kNoUnit)
        for (size_t k = 0; k < K; ++k) at[k] = std::max(at[k], arrives(u, w, ends[unit.after[w]][k], k));
    begins(u, before, at);
    const Worlds ns = cost(u);
    for (size_t k = 0; k < K; ++k) at[k] += ns[k];
    ends[u] = before = at;
    for (size_t k = 0; k < K; ++k) out.last[k] = std::max(out.last[k], at[k]);
  }
  return out;
}

inline constexpr auto kHeldByNothing = [](uint32_t, const auto&) {};
inline constexpr auto kArrivesAtOnce = [](uint32_t, size_t, double end_ns, size_t) { return end_ns; };
inline constexpr auto kBeginsUnseen = [](uint32_t, const auto&, const auto&) {};

// Returns when the last unit ends in this order, from 0, with each unit after everything it waits for. A unit takes
// `cost_ns(unit)`, a message between ranks `latency_ns`. O(units).
template <class Cost>
double order_span_ns(const OrderGraph& graph, const std::vector<uint32_t>& order, const Cost& cost_ns,
                     double latency_ns) {
  const auto arrives = [&](uint32_t u, size_t w, double end_ns, size_t) {
    return end_ns + (graph.units[graph.units[u].after[w]].list == graph.units[u].list ? 0 : latency_ns);
  };
  return replay_units<1>(graph, order, kHeldByNothing, arrives, kBeginsUnseen,
                         [&](uint32_t u) { return std::array<double, 1>{cost_ns(u)}; })
      .last[0];
}

// The costs of one pipeline's units. Each replay takes O(units). References must outlive the object.
class OrderReplay {
 public:
  // `first` is the graph's first list.
  OrderReplay(const OrderGraph& graph, const RankLists& lists, size_t first);

  // The stages that the pipeline has, in ascending order, and the place of one stage among them.
  const std::vector<int32_t>& stages() const { return stages_; }
  size_t place_of(int32_t stage) const;
  // Returns the time of a unit when all units of its kind have the same time.
  double equal_ns(uint32_t unit) const { return kind_ns_[graph_.units[unit].kind]; }

  // Computes T0 (equal costs for each kind), T1 (means by stage, chunk and kind) and T2 (the units' own durations) in
  // one pass.
  void without_messages(ReplayLevels& level_ns) const;
  // Returns T0 for another order of the same units.
  double equal_costs(const std::vector<uint32_t>& order) const;
  // Computes T3 (own durations and MessageTime::after_ns) and T4 (and held_ns as well). `messages` has an entry for
  // each unit.
  void with_messages(const std::vector<MessageTime>& messages, ReplayLevels& level_ns) const;
  UnitWaits waits(const std::vector<MessageTime>& messages) const;

 private:
  size_t number_costs(const RankLists& lists, size_t first);
  double mean_ns(uint32_t unit) const { return stage_ns_[cost_index_[unit]]; }  // for its stage, chunk and kind

  static constexpr size_t kKinds = 5;  // F, B, I, W, F&B
  const OrderGraph& graph_;
  std::vector<int32_t> stages_;
  std::vector<uint32_t> cost_index_;  // for each unit its index into stage_ns_
  std::vector<double> stage_ns_;      // means by stage, chunk and kind
  ByEnum<CellKind, double, kKinds> kind_ns_{};
};

}  // namespace stageline
