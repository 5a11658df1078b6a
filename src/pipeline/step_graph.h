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

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace stageline {

inline constexpr uint32_t kNoCell = UINT32_MAX;   // an operation that nobody recorded, of kComputeCells: a message, or
                                                  // what all ranks do together before their optimizers
inline constexpr uint32_t kNoGroup = UINT32_MAX;  // proceeds alone

// Where the waits come from.
enum class GraphSource : uint8_t {
  kOperations,    // recorded messages and collectives, by the names of the artifact's op types
  kComputeCells,  // order of every rank, trace.links, and one message latency per pair of stages and direction
};

// When a recorded message or collective could have started.
enum class LaunchRule : uint8_t {
  kFree,     // as the artifact has it: a receive is free as soon as the same kind of compute before its own has ended
  kInOrder,  // after all compute of its rank that had ended when it started: what its rank was busy with is no delay
};

struct GraphType {
  std::string name;         // "forward-compute", …; without such names the kind's: "forward", "recv forward", …
  CellKind kind;            // of its first operation
  bool communicates;        // its fair time is the median, not the mean
  bool overlapped = false;  // halves of pairs, each with the time of both
  bool operator==(const GraphType&) const = default;
};

struct GraphStep {
  int32_t step = 0;
  uint32_t begin = 0, end = 0;  // its operations
  int64_t start_ns = 0;         // on common time: the 0 of start_ns and end_ns below
  int64_t span_ns = 0;          // recorded: latest end of what closes the step
  bool counts = true;           // in means over steps and fair times: of kComputeCells, no outlier (outlier_steps())
};

struct GraphGroup {
  uint32_t begin = 0, end = 0;  // its operations: they stand side by side
};

// Structure of arrays by operation. Operations of a step stand together, in an order in which everything comes after
// what it waits for; members of a group stand side by side, after everything that any of them waits for.
struct StepGraph {
  GraphSource source = GraphSource::kComputeCells;
  std::vector<GraphType> types;
  std::vector<GraphStep> steps;  // ascending
  std::vector<GraphGroup> groups;
  int32_t stage_count = 0, dp_count = 0;  // highest known + 1; at least 1

  std::vector<uint32_t> cell;               // row of Trace::cells; kNoCell
  std::vector<uint16_t> type;               // into types
  std::vector<CellKind> kind;               // an unrecorded message: RF or RB, of the rank that receives it
  std::vector<int32_t> part;                // into Trace::parts
  std::vector<int32_t> chunk, micro_batch;  // kUnknown
  std::vector<uint32_t> group_of;           // into groups; kNoGroup. Empty: there are none
  std::vector<int32_t> stage_of, dp_of;     // by part; kUnknown
  std::vector<uint8_t> closes_of;           // by type

  std::vector<int64_t> start_ns, end_ns;  // recorded, from the step's start
  std::vector<double> dur_ns, delay_ns;   // may be below 0 by what clocks and stamps are off, see kLeastNs

  std::vector<uint32_t> wait_begin;  // size() + 1; waits of i: wait_on[wait_begin[i] .. wait_begin[i + 1])
  std::vector<uint32_t> wait_on;     // operations of the same step before i, ascending, each once

  // Of kOperations: the artifact's tolerance. Durations and delays at or below −10 ms are taken as 0, and counted but
  // for delays of what communicates: that is posted early.
  static constexpr double kLeastNs = -10e6;

  size_t size() const { return cell.size(); }
  int32_t stage(size_t op) const { return stage_of[static_cast<size_t>(part[op])]; }
  int32_t dp(size_t op) const { return dp_of[static_cast<size_t>(part[op])]; }
  uint32_t group(size_t op) const { return group_of.empty() ? kNoGroup : group_of[op]; }
  // Its end may be the end of the step: messages' are not, unless all are messages.
  bool closes(size_t op) const { return closes_of[type[op]] != 0; }
  std::span<const uint32_t> waits(size_t op) const {
    return {wait_on.data() + wait_begin[op], wait_on.data() + wait_begin[op + 1]};
  }
};

// Expects sorted cells, places (infer_layout) and, for kComputeCells, trace.links. What is left out or assumed goes to
// `notes`. Times are common ones; recorded operations whose own stamps agree with each other (hardly any message is
// received before it is sent) are taken as stamped: an estimate of the clocks could only blur them.
// Cells whose step is unknown, and parts whose stage is, take no part in waits across ranks. Contradictory
// waits (a cycle) are cut at the operation that started first, and counted.
// A graph whose replay misses the recorded steps by more than 1 % (replay_miss.h) is of another run: where that is so
// of recorded operations, the waits come from compute cells. Errors: kBadInput when no operation has a step, ranks have
// clocks that cannot be compared, or either graph misses the steps. O(cells log cells).
Result<StepGraph> build_step_graph(const Trace& trace, Diagnostics& notes, LaunchRule rule = LaunchRule::kFree);

// What communication, the optimizer and the like start late by is mostly waiting that no recording names: for other
// messages of a batch, for ranks that a barrier holds. Any change shortens that too, so it must not stay in worlds. In
// every step somebody waits least: the median over steps of these least delays, by type; 0 for compute. O(operations).
std::vector<double> launch_delays(const StepGraph& graph);

// One world: what every operation takes in it, by operation.
struct OpTimes {
  std::vector<double> dur_ns, delay_ns;
};
OpTimes recorded_times(const StepGraph& graph);  // a replay returns GraphStep::span_ns, to rounding
// Straggler-free: no delays, and every operation takes what its type does over all steps that count, stages and
// replicas: the mean of compute, the median of communication. O(ops).
OpTimes ideal_times(const StepGraph& graph);
std::vector<double> fair_times(const StepGraph& graph);  // these durations, by type; 0 without operations

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

}  // namespace stageline
