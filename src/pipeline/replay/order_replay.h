// Replays of the order that ran, with more and more of the real inputs (pipeline/measure/waterfall.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

#include "pipeline/replay/order_graph.h"

namespace stageline {

// When the last unit ends, from 0, in ns: T0 … T4.
using ReplayLevels = std::array<double, 5>;

// How long messages held up one unit.
struct MessageTime {
  double held_ns = 0;       // after its rank was free, the input being there: its rank sat in the receive
  double after_ns[2] = {};  // after the end of what it waits for
};

// How long ranks wait in every replay, T0 … T4.
struct UnitWaits {
  std::vector<ReplayLevels> before;  // each unit, since its rank was free
  std::vector<ReplayLevels> after;   // the last unit of each list, until the replay's end
};

// What replay_units() leaves: when each list is through, and the last of all; in K worlds, from 0, in ns.
template <size_t K>
struct UnitEnds {
  std::vector<std::array<double, K>> free_at;
  std::array<double, K> last{};
};

// Units one after the other in `order`, each after what it waits for, in K worlds at a time:
//
//   ready = the end of the unit before it in its list, after held(unit, ready)
//   ready = max(ready, arrives(unit, w, end of after[w], world))   for what it waits for
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

// When the last unit ends, from 0, in this order, each after what it waits for: a unit takes `cost_ns(unit)`, a message
// between ranks `latency_ns`. O(units).
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

// The costs of one pipeline's units. Every replay is O(units). References must outlive it.
class OrderReplay {
 public:
  // `first`: the graph's first list.
  OrderReplay(const OrderGraph& graph, const RankLists& lists, size_t first);

  // The stages that the pipeline has, ascending, and the place of one among them.
  const std::vector<int32_t>& stages() const { return stages_; }
  size_t place_of(int32_t stage) const;
  // What a unit takes when every one of its kind takes the same.
  double equal_ns(uint32_t unit) const { return kind_ns_[static_cast<size_t>(graph_.units[unit].kind)]; }

  // T0 (equal costs by kind), T1 (means by stage, chunk and kind) and T2 (own durations), in one pass.
  void without_messages(ReplayLevels& level_ns) const;
  // T0 in another order of the same units.
  double equal_costs(const std::vector<uint32_t>& order) const;
  // T3 (own durations and MessageTime::after_ns) and T4 (and held_ns); `messages` by unit.
  void with_messages(const std::vector<MessageTime>& messages, ReplayLevels& level_ns) const;
  UnitWaits waits(const std::vector<MessageTime>& messages) const;

 private:
  size_t number_costs(const RankLists& lists, size_t first);
  double mean_ns(uint32_t unit) const { return stage_ns_[cost_index_[unit]]; }  // of its stage, chunk and kind

  static constexpr size_t kKinds = 5;  // F, B, I, W, F&B
  const OrderGraph& graph_;
  std::vector<int32_t> stages_;
  std::vector<uint32_t> cost_index_;  // by unit: into stage_ns_
  std::vector<double> stage_ns_;      // mean by stage, chunk, kind
  std::array<double, kKinds> kind_ns_{};
};

}  // namespace stageline
