// The recorded order as a graph that can be replayed. It has the work of every rank of one pipeline (one step and
// replica), in its recorded order, and the waits of each cell.
//
//     rank list   F0 → F1 → B0 → F2 → …          a rank does one thing at a time, in its order
//     waits       F(mb, s−1) → F(mb, s)          s: virtual stage; the schedule need not be known
//                 B(mb, s+1) → B(mb, s)          at the last virtual stage F(mb, s) → B(mb, s); B or I
//                 I(mb, s)   → W(mb, s)
//
// Units are ordered so that each comes after everything it waits for. So a replay is one pass, and several replays can
// share the order.
#pragma once

#include "model/schedule.h"
#include "pipeline/order/rank_lists.h"

namespace stageline {

inline constexpr uint32_t kNoUnit = UINT32_MAX;

// One piece of work of a rank: an F, B, I or W, or an overlapped pair of them.
struct OrderUnit {
  int64_t start_ns = 0, end_ns = 0;  // as recorded, in common time
  double own_ns = 0;                 // the time its rank spends on it alone; what earlier work covers does not count
  uint32_t token = 0;                // index into RankLists, for a pair the first of its two
  uint32_t list = 0;                 // counted from the first list of the graph
  uint32_t after[2] = {kNoUnit, kNoUnit};  // the units it waits for besides the one before it on its rank
  CellKind kind = CellKind::kForward;      // F, B, I, W or F&B
  int16_t chunk = 0;                       // chunk of the first action; 0 when unknown
};

struct OrderGraph {
  std::vector<OrderUnit> units;      // list after list, each in its own order
  std::vector<uint32_t> list_begin;  // for each list its first unit, and one entry more
  std::vector<uint32_t> order;       // all units, each after everything it waits for
  int64_t start_ns = 0, end_ns = 0;  // first start and last end of the units
  int64_t unnumbered = 0;            // units without a micro-batch or chunk, so that it is not known what they wait for
  int64_t without_producer = 0;      // units whose producer was not recorded
  int64_t broken = 0;                // waits that close a circle and were left out; then labels or clocks are wrong
  double overlap_ns = 0;             // time in which a rank did two things at once, counted once
};

// The shared data of the graphs of one trace. The arguments of its constructor must outlive it.
class OrderGraphs {
 public:
  // `lists` must be those of this trace. O(cells).
  OrderGraphs(const Trace& trace, const RankLists& lists, ChunkLayout layout);
  // Returns the graph of lists [first, last), which are one step and replica. O(units); O(units log ranks) where waits
  // close circles.
  OrderGraph graph(size_t first, size_t last) const;

 private:
  void add_units(size_t list, uint32_t index, OrderGraph& graph) const;
  void add_waits(size_t first, size_t last, OrderGraph& graph) const;

  const Trace& trace_;
  const RankLists& lists_;
  Schedule shape_;  // only sizes and layout are filled
  int32_t ways_ = 1, vstages_ = 1;
  std::vector<int32_t> position_;  // for each part its place among the parts of its replica and stage
  std::vector<uint32_t> loss_of_;  // for each cell loss_backwards(); empty when all are kNoPair
  // For each backward the cell that is the backward of its loss; empty when there is none.
  std::vector<uint32_t> loss_cell_of_;
};

// Orders the same units with each list in another order: `sequence` has the units of every list, list by list. False
// when that order cannot run. O(units).
bool reorder(const OrderGraph& graph, const std::vector<uint32_t>& sequence, std::vector<uint32_t>& order);

// Replays the order that ran, adding one real input after the other (pipeline/measure/waterfall.h explains the levels).

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
template <size_t K> struct UnitEnds {
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
