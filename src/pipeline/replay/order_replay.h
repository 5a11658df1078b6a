// Replays of the order that ran, with more and more of the real inputs (pipeline/measure/waterfall.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
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

// When the last unit ends, from 0, in this order, each after what it waits for: a unit takes `cost_ns(unit)`, a message
// between ranks `latency_ns`. O(units).
template <class Cost>
double order_span_ns(const OrderGraph& graph, const std::vector<uint32_t>& order, const Cost& cost_ns,
                     double latency_ns) {
  std::vector<double> ends(graph.units.size()), free_at(graph.list_begin.size() - 1);
  double most = 0;
  for (const uint32_t u : order) {
    const OrderUnit& unit = graph.units[u];
    double at = free_at[unit.list];
    for (const uint32_t before : unit.after)
      if (before != kNoUnit) at = std::max(at, ends[before] + (graph.units[before].list == unit.list ? 0 : latency_ns));
    at += cost_ns(u);
    ends[u] = free_at[unit.list] = at;
    most = std::max(most, at);
  }
  return most;
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

  static constexpr size_t kKinds = 5;  // F, B, I, W, F&B
  const OrderGraph& graph_;
  std::vector<int32_t> stages_;
  std::vector<uint32_t> cost_index_;  // by unit: into stage_ns_
  std::vector<double> stage_ns_;      // mean by stage, chunk, kind
  std::array<double, kKinds> kind_ns_{};
};

}  // namespace stageline
