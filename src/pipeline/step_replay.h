// The replay of step_graph.h, of one step alone.
#pragma once

#include "pipeline/step_graph.h"

namespace stageline {

// Times and answer are of the step's operations, from step.begin on. O(its operations and waits).
ReplayedOps replay_step_ops(const StepGraph& graph, const GraphStep& step, const OpTimes& times);

}  // namespace stageline
