// StepGraph: what every operation of a step took by itself, and what it waited for. Who changes the numbers and replays
// the graph learns how long the step would have taken. It is the one graph under `slowdown`, `pipeline-critical-path`,
// what-if and the findings.
//
//   start = latest end of what it waits for (0, the step's start, when it waits for nothing) + delay
//   end   = (of a group: latest start of its members; else its own start) + dur
//
// dur is the duration without waiting. Compute has its recorded duration. A member of a group (a send and its receive;
// a collective over stages, data-parallel ranks or both) has the transfer: its own end − the latest start in the group.
// The delay is the time between the latest end of its dependencies and its start: the host was late, data were loaded,
// or the reason was not recorded. So a replay of the recorded numbers returns the recorded step.
//
// The definitions are those of "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI '25),
// §3, and the dependencies those of its artifact (docs/analyses/slowdown.md); the code is ours.
#pragma once

#include "pipeline/replay/step_replay.h"
#include "pipeline/sums/pipeline_sums.h"

namespace stageline {

// Expects sorted cells, places (infer_layout) and, for kComputeCells, trace.links. Exclusions and assumptions are
// reported in `notes`. Times are common times. If almost no message is received before it is sent, the timestamps of
// recorded operations are kept, because an estimate of the clocks could only blur them. Cells without a known step, and
// parts without a known stage, take no part in waits across ranks. Waits that contradict each other (a cycle) are cut
// at the operation that started first, and counted. A graph whose replay misses the recorded steps by more than 1 %
// (replay_miss.h) does not describe this run. If that happens with recorded operations, the waits are taken from
// compute cells instead. Errors: kBadInput when no operation has a step, when ranks have clocks that cannot be
// compared, or when neither graph meets the steps. O(cells log cells).
Result<StepGraph> build_step_graph(const Trace& trace, const PipelineSums& sums, Diagnostics& notes,
                                   LaunchRule rule = LaunchRule::kFree);

// The operations of a run that has no such graph: what each took by itself, and no waits. Operations are those of
// compute cells. Expects sorted cells. O(cells log cells).
StepGraph graph_without_waits(const Trace& trace);

// Returns, for each type, the delay that communication, the optimizer and the like always have. It is mostly unrecorded
// waiting: for other messages of a batch, or for ranks that a barrier holds. Any change would shorten that too, so it
// must not stay in simulated scenarios. In every step some operation of a type waits least; the result is the median of
// these least delays over steps, and 0 for compute. O(operations).
std::vector<double> launch_delays(const StepGraph& graph);

OpTimes recorded_times(const StepGraph& graph);  // a replay of them returns GraphStep::span_ns, to rounding
// Returns the times without stragglers: no delays, and every operation takes the usual time of its type over all
// stages, replicas and steps that count. That is the mean for compute and the median for communication. O(ops).
OpTimes ideal_times(const StepGraph& graph);
// Returns these durations, for each type; 0 for a type without operations.
std::vector<double> fair_times(const StepGraph& graph);

}  // namespace stageline
