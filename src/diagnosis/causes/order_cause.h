// Causes that are an order of work: left by mistake, or without the split that the schedule lives on. Part of causes.
//
//   as it ran             its own order, its own durations, one latency for all messages     T
//   order restored        the same cells in the schedule's order                             T − what the order costs
//   split as well         whole backwards where the schedule has I and W, as the schedule    … − what the missing
//                         has them                                                               split costs
#pragma once

#include <vector>

#include "diagnosis/causes/cause.h"
#include "pipeline/replay/step_graph.h"
#include "pipeline/replay/theory.h"

namespace stageline {

// All orders are replayed by the same rules with each cell's own duration, so that nothing but the order differs; what
// cells start late and what single links take is no matter of order. A step counts where all its replicas have every
// cell that is compared. `counts`: by step of the graph. Nothing without a recognised schedule, or where its theory is
// not known. O(cells log cells) where there is something to price.
void add_order_causes(const Trace& trace, const StepGraph& graph, const TheoryRun& theory,
                      const std::vector<bool>& counts, std::vector<Cause>& out);

}  // namespace stageline
