// The replay of step_graph.h: of several worlds side by side; and, for those who ask at every move of a slider, of one
// world, and of one step alone.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pipeline/replay/graph_ops.h"

namespace stageline {

// Step times of several worlds.
struct WorldTimes {
  size_t worlds = 0;
  std::vector<bool> counts;     // by step: GraphStep::counts
  std::vector<double> step_ns;  // [step · worlds + world], steps as in StepGraph::steps
  double ns(size_t step, size_t world) const { return step_ns[step * worlds + world]; }
  double mean_ns(size_t world) const;  // over steps that count; NaN without
};

// Writes what operation `op` takes in the worlds [first, first + dur_ns.size()). Called from several threads, once per
// operation and stretch of worlds: pure, and cheap.
using FillWorlds = std::function<void(uint32_t op, size_t first, std::span<double> dur_ns, std::span<double> delay_ns)>;

// Evaluates all worlds in one pass, side by side, in parallel over steps; the same bytes whatever the number of
// threads. O((ops + waits) · worlds), memory O(threads · ops of a step · 16).
WorldTimes replay_worlds(const StepGraph& graph, size_t worlds, const FillWorlds& fill);
WorldTimes replay_worlds(const StepGraph& graph, std::span<const OpTimes> worlds);

// One world in full: start and end of every operation, from its step's start.
struct ReplayedOps {
  std::vector<double> start_ns, end_ns;
};
ReplayedOps replay_ops(const StepGraph& graph, const OpTimes& times);

// Writes what operations [begin, end) take in the world: of operation `begin + i` to dur_ns[i] and delay_ns[i]. Called
// from several threads, once per operation: pure.
using FillStretch = std::function<void(uint32_t begin, uint32_t end, double* dur_ns, double* delay_ns)>;

// Step times of one world, by StepGraph::steps: what replay_worlds() says of it, in half the time, for operations are
// asked by the thousand. O(operations and waits), memory O(threads · operations of a step).
std::vector<double> replay_world(const StepGraph& graph, const FillStretch& fill);

// Times and answer are of the step's operations, from step.begin on. O(its operations and waits).
ReplayedOps replay_step_ops(const StepGraph& graph, const GraphStep& step, const OpTimes& times);

}  // namespace stageline
