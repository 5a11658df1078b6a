// Causes that lie in the order of work: an order left by mistake, or run without the split that the schedule is built
// on. Part of causes.
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

// All orders are replayed by the same rules with each cell's own duration, so that they differ only in order; late
// starts and times of single links are left out. A step counts where all its replicas have every cell that is compared.
// `counts` says for each step of the graph whether it counts. Adds nothing without a recognised schedule, or where its
// theory is not known. O(cells log cells) where there is something to price.
void add_order_causes(const Trace& trace, const StepGraph& graph, const TheoryRun& theory,
                      const std::vector<bool>& counts, std::vector<Cause>& out);

}  // namespace stageline
