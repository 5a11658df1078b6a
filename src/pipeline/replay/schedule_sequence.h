// Puts a pipeline's own units into the order of the recognised schedule.
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
    bool known = false;           // every unit has a place in the schedule, and the schedule's order can run
    bool as_it_ran = false;       // the lists are in the schedule's order already
    std::vector<uint32_t> order;  // units, each after everything it waits for
  };
  // Returns the sequence for the graph of theory.lists [first, last), which are one step and replica. Units that the
  // schedule runs as one cell, and the run did not, keep their order. O(units log units).
  Sequence of(const OrderGraph& graph, size_t first, size_t last) const;

 private:
  const TheoryRun& theory_;
  std::vector<SchedulePlaces> places_;  // for each of TheoryRun::sizes
};

}  // namespace stageline
