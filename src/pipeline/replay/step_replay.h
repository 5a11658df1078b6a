// Replays a step_graph.h in several worlds side by side, or in one world, or in one step alone; the latter two serve
// sliders, which ask again at every move.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pipeline/replay/graph_ops.h"

namespace stageline {

// The step times of several worlds.
struct WorldTimes {
  size_t worlds = 0;
  std::vector<bool> counts;     // for each step GraphStep::counts
  std::vector<double> step_ns;  // index: step · worlds + world, with steps as in StepGraph::steps
  double ns(size_t step, size_t world) const { return step_ns[step * worlds + world]; }
  double mean_ns(size_t world) const;  // over the steps that count; NaN when there is none
};

// Writes what operation `op` takes in the worlds [first, first + dur_ns.size()). It is called from several threads,
// once per operation and stretch of worlds, so it must be pure and cheap.
using FillWorlds = std::function<void(uint32_t op, size_t first, std::span<double> dur_ns, std::span<double> delay_ns)>;

// Evaluates all worlds in one pass, side by side, in parallel over steps. The result has the same bytes for any number
// of threads. O((ops + waits) · worlds), memory O(threads · ops of a step · 16).
WorldTimes replay_worlds(const StepGraph& graph, size_t worlds, const FillWorlds& fill);
WorldTimes replay_worlds(const StepGraph& graph, std::span<const OpTimes> worlds);

// One world in full: start and end of every operation, counted from its step's start.
struct ReplayedOps {
  std::vector<double> start_ns, end_ns;
};
ReplayedOps replay_ops(const StepGraph& graph, const OpTimes& times);

// Writes what the operations [begin, end) take in the world: for operation `begin + i` to dur_ns[i] and delay_ns[i]. It
// is called from several threads, once per operation, so it must be pure.
using FillStretch = std::function<void(uint32_t begin, uint32_t end, double* dur_ns, double* delay_ns)>;

// Returns the step times of one world, in the order of StepGraph::steps: the same as replay_worlds() in half the time,
// since the times of thousands of operations are asked for in one call. O(operations and waits), memory O(threads ·
// operations of a step).
std::vector<double> replay_world(const StepGraph& graph, const FillStretch& fill);

// Replays one step; `times` and the result hold that step's operations, from step.begin on. O(its operations and
// waits).
ReplayedOps replay_step_ops(const StepGraph& graph, const GraphStep& step, const OpTimes& times);

}  // namespace stageline
