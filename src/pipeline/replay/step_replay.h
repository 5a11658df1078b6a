// Replays a step_graph.h in several worlds side by side, or in one step alone.
#pragma once

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

// The place to write the times of the operations [begin, end) of one step in the scenarios [first, first + count).
// Operation `begin + i` in scenario `first + l` goes to dur_ns[i · width + l] and delay_ns[i · width + l].
struct WorldStretch {
  uint32_t begin = 0, end = 0;
  size_t first = 0, count = 0, width = 0;
  double *dur_ns = nullptr, *delay_ns = nullptr;
  // Returns the part for one of these scenarios alone.
  WorldStretch of_world(size_t world) const {
    return {begin, end, world, 1, width, dur_ns + (world - first), delay_ns + (world - first)};
  }
};

// It is called from several threads, once per operation and world, so it must be pure.
using FillWorlds = std::function<void(const WorldStretch& stretch)>;

// Evaluates all worlds in one pass, side by side, in parallel over steps. The result has the same bytes for any number
// of threads. O((ops + waits) · worlds), memory O(threads · ops of a step · 16).
WorldTimes replay_worlds(const StepGraph& graph, size_t worlds, const FillWorlds& fill);
// Does the same; fill(op, first, dur_ns, delay_ns) writes the times of one operation in the scenarios [first, first +
// dur_ns.size()).
template <std::invocable<uint32_t, size_t, std::span<double>, std::span<double>> FillOp>
WorldTimes replay_worlds(const StepGraph& graph, size_t worlds, const FillOp& fill) {
  return replay_worlds(graph, worlds, FillWorlds([&fill](const WorldStretch& s) {
                         double *dur = s.dur_ns, *delay = s.delay_ns;
                         for (uint32_t op = s.begin; op < s.end; ++op, dur += s.width, delay += s.width)
                           fill(op, s.first, std::span(dur, s.count), std::span(delay, s.count));
                       }));
}
WorldTimes replay_worlds(const StepGraph& graph, std::span<const OpTimes> worlds);

// One world alone, its step times in the order of StepGraph::steps. The program of a report's page needs no other
// width.
std::vector<double> replay_world(const StepGraph& graph, const FillWorlds& fill);

// One world in full: start and end of every operation, counted from its step's start.
struct ReplayedOps {
  std::vector<double> start_ns, end_ns;
};
ReplayedOps replay_ops(const StepGraph& graph, const OpTimes& times);

// Replays one step; `times` and the result hold that step's operations, from step.begin on. O(its operations and
// waits).
ReplayedOps replay_step_ops(const StepGraph& graph, const GraphStep& step, const OpTimes& times);

}  // namespace stageline
