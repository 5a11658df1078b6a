// The operations of a run's steps as columns: what each took by itself, and what it waited for. step_graph.h makes
// them, and step_replay.h replays them.
#pragma once

#include "model/trace.h"

namespace stageline {

// A derived operation of kComputeCells: a message, or the collective of all ranks before their optimizers.
inline constexpr uint32_t kNoCell = UINT32_MAX;
inline constexpr uint32_t kNoGroup = UINT32_MAX;  // the operation proceeds alone

// The source of the waits.
enum class GraphSource : uint8_t {
  kOperations,    // recorded messages and collectives, named as the paper's artifact names its op types
  kComputeCells,  // the order on every rank, trace.links, and one message latency per pair of stages and direction
  kNone,          // nothing says what operations wait for: there are no waits, and no replay gives step times
};

// The moment from which a recorded message or collective counts as late.
enum class LaunchRule : uint8_t {
  kFree,     // as the artifact has it: a receive could start once the compute of its kind before its own had ended
  kInOrder,  // once all compute of its rank that had ended by its start; so busy time of its rank is not a delay
};

struct GraphType {
  std::string name;         // "forward-compute", …; without such names that of the kind: "forward", "recv forward", …
  CellKind kind;            // kind of its first operation
  bool communicates;        // the type communicates, so its fair time is the median and not the mean
  bool overlapped = false;  // halves of overlapped pairs, each of which has the time of both
  bool inside = false;      // ranks meet in it inside their cells (peer_cells.h)
  bool operator==(const GraphType&) const = default;
};

struct GraphStep {
  int32_t step = 0;
  uint32_t begin = 0, end = 0;  // indices of its operations
  int64_t start_ns = 0;         // in common time; start_ns and end_ns of its operations count from this time
  int64_t span_ns = 0;          // recorded: the latest end of an operation that closes the step
  // True if the step counts in means over steps and in fair times; with kComputeCells outliers (PipelineSums::outliers)
  // do not.
  bool counts = true;
};

struct GraphGroup {
  uint32_t begin = 0, end = 0;  // indices of its operations, which stand side by side
};

// Holds one row per operation, as a structure of arrays. The operations of a step are adjacent, each after everything
// it waits for. Members of a group are adjacent, after everything that any of them waits for.
struct StepGraph {
  GraphSource source = GraphSource::kComputeCells;
  // For kComputeCells: a message lasts as its receive was recorded, rather than as long as is usual between its two
  // stages.
  bool messages_recorded = false;
  std::vector<GraphType> types;
  std::vector<GraphStep> steps;  // in ascending order
  std::vector<GraphGroup> groups;
  int32_t stage_count = 0, dp_count = 0;  // highest known number + 1, at least 1

  std::vector<uint32_t> cell;  // row of Trace::cells; kNoCell
  std::vector<uint16_t> type;  // index into types
  std::vector<CellKind> kind;  // for a message that was not recorded RF or RB; it belongs to the rank that receives it
  std::vector<int32_t> part;   // index into Trace::parts
  std::vector<int32_t> chunk, micro_batch;  // kUnknown when not known
  std::vector<uint32_t> group_of;           // index into groups, or kNoGroup; empty when there are no groups
  std::vector<int32_t> stage_of, dp_of;     // for each part; kUnknown when not known
  std::vector<uint8_t> closes_of;           // for each type, see closes()

  std::vector<int64_t> start_ns;  // as recorded, counted from the step's start
  std::vector<int64_t>
      stored_end_ns;  // the same; empty where every operation ends dur_ns after its start, see ended_ns()
  std::vector<double> dur_ns, delay_ns;  // may be slightly below 0 where clocks or timestamps are off, see kMinNs

  // size() + 1 entries; the waits of operation i are wait_on[wait_begin[i] .. wait_begin[i + 1]).
  std::vector<uint32_t> wait_begin;
  std::vector<uint32_t> wait_on;  // operations of the same step before i, in ascending order, each once

  // The artifact's tolerance, used for kOperations: durations and delays at or below −10 ms are set to 0 and counted.
  // Delays of what communicates are not counted, since it is posted early.
  static constexpr double kMinNs = -10e6;

  size_t size() const { return cell.size(); }
  int32_t stage(size_t op) const { return stage_of[part[op]]; }
  int32_t dp(size_t op) const { return dp_of[part[op]]; }
  uint32_t group(size_t op) const { return group_of.empty() ? kNoGroup : group_of[op]; }
  // Returns its recorded end, counted from the step's start. An operation of kComputeCells that proceeds alone lasts
  // from its start to its end. So a graph of such operations needs no column of ends: 8 of 60 B an operation.
  int64_t ended_ns(size_t op) const {
    return stored_end_ns.empty() ? start_ns[op] + static_cast<int64_t>(dur_ns[op]) : stored_end_ns[op];
  }
  // True when its end may be the end of the step. Messages do not close a step, unless all operations are messages.
  bool closes(size_t op) const { return closes_of[type[op]] != 0; }
  std::span<const uint32_t> waits(size_t op) const {
    return {wait_on.data() + wait_begin[op], wait_on.data() + wait_begin[op + 1]};
  }
};

// Holds one scenario: the duration of each operation.
struct OpTimes {
  std::vector<double> dur_ns, delay_ns;
};

}  // namespace stageline
