// StepGraph: what every operation of a step took by itself, and what it waited for. Change the numbers, replay, and
// read what the step would have taken: the one graph under `slowdown`, `pipeline-critical-path`, what-if and the
// findings.
//
//   start = latest end of what it waits for (0, the step's start, when nothing) + delay
//   end   = (of a group: latest start of its members; else its own start) + dur
//
// dur is the duration without waiting: of compute as recorded; of the members of a group (a send and its receive, a
// collective over stages, data-parallel ranks or both) the transfer: own end − latest start in the group. delay is what
// is left between the latest end that it waits for and its start: the host came late, data loading, what nobody
// recorded. So a replay of the recorded numbers returns the recorded step.
//
// Definitions as in "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI '25), §3, and the
// dependencies of its artifact (docs/analyses/slowdown.md); the code is ours.
#pragma once

#include <vector>

#include "base/result.h"
#include "model/pipeline_sums.h"
#include "model/trace.h"
#include "pipeline/replay/graph_ops.h"
#include "pipeline/replay/step_replay.h"

namespace stageline {

// Expects sorted cells, places (infer_layout) and, for kComputeCells, trace.links. What is left out or assumed goes to
// `notes`. Times are common ones; recorded operations whose own stamps agree with each other (hardly any message is
// received before it is sent) are taken as stamped: an estimate of the clocks could only blur them.
// Cells whose step is unknown, and parts whose stage is, take no part in waits across ranks. Contradictory
// waits (a cycle) are cut at the operation that started first, and counted.
// A graph whose replay misses the recorded steps by more than 1 % (replay_miss.h) is of another run: where that is so
// of recorded operations, the waits come from compute cells. Errors: kBadInput when no operation has a step, ranks have
// clocks that cannot be compared, or either graph misses the steps. O(cells log cells).
Result<StepGraph> build_step_graph(const Trace& trace, const PipelineSums& sums, Diagnostics& notes,
                                   LaunchRule rule = LaunchRule::kFree);

// What communication, the optimizer and the like start late by is mostly waiting that no recording names: for other
// messages of a batch, for ranks that a barrier holds. Any change shortens that too, so it must not stay in worlds. In
// every step somebody waits least: the median over steps of these least delays, by type; 0 for compute. O(operations).
std::vector<double> launch_delays(const StepGraph& graph);

OpTimes recorded_times(const StepGraph& graph);  // a replay returns GraphStep::span_ns, to rounding
// Straggler-free: no delays, and every operation takes what its type does over all steps that count, stages and
// replicas: the mean of compute, the median of communication. O(ops).
OpTimes ideal_times(const StepGraph& graph);
std::vector<double> fair_times(const StepGraph& graph);  // these durations, by type; 0 without operations

}  // namespace stageline
