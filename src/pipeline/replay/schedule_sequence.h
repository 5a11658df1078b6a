// A pipeline's own units, put in the order of the recognised schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/order/schedule_places.h"
#include "pipeline/replay/order_graph.h"
#include "pipeline/replay/theory.h"

namespace stageline {

class ScheduleSequences {
 public:
  // `theory` must outlive it.
  explicit ScheduleSequences(const TheoryRun& theory);

  struct Sequence {
    bool known = false;           // every unit has a place in the schedule, and its order can run
    bool as_it_ran = false;       // lists are the schedule's
    std::vector<uint32_t> order;  // units, each after what it waits for
  };
  // Of the graph of theory.lists [first, last), one step and replica. Units that the schedule runs as one cell and the
  // run did not keep their order. O(units log units).
  Sequence of(const OrderGraph& graph, size_t first, size_t last) const;

 private:
  const TheoryRun& theory_;
  std::vector<SchedulePlaces> places_;  // by TheoryRun::sizes
};

}  // namespace stageline
