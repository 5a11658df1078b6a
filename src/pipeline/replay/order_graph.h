// The order that ran, as a graph to replay: one pipeline (step and replica), every rank's work in the order in which it
// was recorded, and what each piece waits for.
//
//     rank list   F0 → F1 → B0 → F2 → …          a rank does one thing at a time, in its order
//     waits       F(mb, s−1) → F(mb, s)          s: virtual stage; the schedule need not be known
//                 B(mb, s+1) → B(mb, s)          at the last virtual stage F(mb, s) → B(mb, s); B or I
//                 I(mb, s)   → W(mb, s)
//
// Units stand in an order in which everything comes after what it waits for, so a replay is one pass, and several
// replays can share it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/number.h"
#include "model/schedule.h"
#include "model/trace.h"
#include "pipeline/order/rank_lists.h"

namespace stageline {

inline constexpr uint32_t kNoUnit = UINT32_MAX;

// One thing that a rank does: an F, B, I or W, or an overlapped pair of them.
struct OrderUnit {
  int64_t start_ns = 0, end_ns = 0;  // as recorded, on common time
  double own_ns = 0;                 // time that its rank spends on it alone: what earlier work covers does not count
  uint32_t token = 0;                // of RankLists, the first of a pair's two
  uint32_t list = 0;                 // from the first of the graph
  uint32_t after[2] = {kNoUnit, kNoUnit};  // what it waits for besides its own rank
  CellKind kind = CellKind::kForward;      // F, B, I, W or F&B
  int16_t chunk = 0;                       // of the first action; 0 where it is unknown
};

struct OrderGraph {
  std::vector<OrderUnit> units;      // by list, in its order
  std::vector<uint32_t> list_begin;  // of each list; one more than there are lists
  std::vector<uint32_t> order;       // units, each after what it waits for
  int64_t start_ns = 0, end_ns = 0;  // first start and last end of the units
  int64_t unnumbered = 0;            // units without a micro-batch or chunk: what they wait for nobody knows
  int64_t without_producer = 0;      // those whose producer was not recorded
  int64_t broken = 0;                // waits that close a circle, and were left out: labels or clocks are wrong
  double overlap_ns = 0;             // time in which a rank did two things at once, counted once
};

// What graphs of one trace share. References must outlive it.
class OrderGraphs {
 public:
  // `lists` of this trace. O(cells).
  OrderGraphs(const Trace& trace, const RankLists& lists, ChunkLayout layout);
  // Lists [first, last) of one step and replica. O(units), and O(units log ranks) where waits close circles.
  OrderGraph graph(size_t first, size_t last) const;

 private:
  void add_units(size_t list, uint32_t index, OrderGraph& graph) const;
  void add_waits(size_t first, size_t last, OrderGraph& graph) const;

  const Trace& trace_;
  const RankLists& lists_;
  Schedule shape_;  // sizes and layout only
  int32_t ways_ = 1, vstages_ = 1;
  std::vector<int32_t> position_;       // by part: its place among those of its replica and stage
  std::vector<uint32_t> loss_of_;       // by cell: loss_backwards(); empty where there is none
  std::vector<uint32_t> loss_cell_of_;  // by cell: the loss's part of this backward; empty where there is none
};

// The same units with each list in another order: `sequence` has the units of every list, list by list. False when that
// order cannot run. O(units).
bool reorder(const OrderGraph& graph, const std::vector<uint32_t>& sequence, std::vector<uint32_t>& order);

}  // namespace stageline
