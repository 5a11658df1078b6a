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

#include <cstdint>
#include <vector>

#include "base/number.h"
#include "model/schedule.h"
#include "model/trace.h"
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

}  // namespace stageline
