// The operations of a run's steps, what each took by itself and what it waited for, as columns: step_graph.h makes
// them, step_replay.h replays them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

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
  bool counts = true;  // in means over steps and fair times: of kComputeCells, no outlier (PipelineSums::outliers)
};

struct GraphGroup {
  uint32_t begin = 0, end = 0;  // its operations: they stand side by side
};

// Structure of arrays by operation. Operations of a step stand together, in an order in which everything comes after
// what it waits for; members of a group stand side by side, after everything that any of them waits for.
struct StepGraph {
  GraphSource source = GraphSource::kComputeCells;
  // Of kComputeCells: messages last as their receives were recorded, and not what is usual between two stages.
  bool messages_recorded = false;
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

// One world: what every operation takes in it, by operation.
struct OpTimes {
  std::vector<double> dur_ns, delay_ns;
};

}  // namespace stageline
