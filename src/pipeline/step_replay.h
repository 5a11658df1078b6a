// The replay of step_graph.h for those who ask at every move of a slider: of one world, and of one step alone.
#pragma once

#include "pipeline/step_graph.h"

namespace stageline {

// Writes what operations [begin, end) take in the world: of operation `begin + i` to dur_ns[i] and delay_ns[i]. Called
// from several threads, once per operation: pure.
using FillStretch = std::function<void(uint32_t begin, uint32_t end, double* dur_ns, double* delay_ns)>;

// Step times of one world, by StepGraph::steps: what replay_worlds() says of it, in half the time, for operations are
// asked by the thousand. O(operations and waits), memory O(threads · operations of a step).
std::vector<double> replay_world(const StepGraph& graph, const FillStretch& fill);

// Times and answer are of the step's operations, from step.begin on. O(its operations and waits).
ReplayedOps replay_step_ops(const StepGraph& graph, const GraphStep& step, const OpTimes& times);

}  // namespace stageline
