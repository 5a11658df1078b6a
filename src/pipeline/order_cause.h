// Causes that are an order of work: left by mistake, or without the split that the schedule lives on. Part of causes.
#pragma once

#include <vector>

#include "pipeline/causes.h"

namespace stageline {

// Both orders are replayed with the same times, so that nothing but the order differs: the mean of each (stage, chunk,
// kind), one latency for all messages, no delays, nothing after the pipeline. `counts`: by step of the graph. Nothing
// without a recognised schedule, or where its theory is not known.
void add_order_causes(const StepGraph& graph, const TheoryRun& theory, const std::vector<bool>& counts,
                      std::vector<Cause>& out);

}  // namespace stageline
