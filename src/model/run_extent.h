// Sizes and times of a run as users see them. Extent gives highest values, which mislead where labels are not 0, 1, ….
#pragma once

#include "model/trace.h"

namespace stageline {

// Returns the most common number of different micro-batches per step; of equally common numbers, the largest. Labels
// may be any numbers: 100, 107 and 149 are three micro-batches. Expects sorted cells. O(cells); O(cells log cells)
// where the highest label is far above the number of cells.
int32_t micro_batches_per_step(const Trace& trace);

// The micro-batches of the first stage per step, counted by its forwards. They differ if a batch grows, replicas are
// given unequal numbers, or rows are missing. O(cells). Expects sorted cells.
struct MicroBatchRange {
  int32_t min = 0, max = 0;
  bool between_ranks = false;  // within one step
};
MicroBatchRange micro_batch_range(const Trace& trace);

// Returns how many step numbers the files have, each once whatever the ranks: of the cells where there are any, else of
// the profiler's steps that the filters leave. 0: the run has no steps. O(cells) or O(slices).
int64_t step_count_of(const Trace& trace);

// Returns the time from the first start to the last end of what the filters leave: of slices in a profile, else of
// cells, on the clocks as they are. O(cells) or O(slices).
int64_t recording_ns(const Trace& trace);

// Returns the 0 of axes: the first start of a cell on common time, without cells of a slice; 0 of an empty trace.
// O(cells), without them O(lanes).
int64_t axis_zero_ns(const Trace& trace);

// Where the two ends of a link are, and whether a run was recorded on hosts alone: what advice depends on.

enum class LinkMachines : uint8_t { kUndecided, kSame, kSeveral };

// The machines of two stages' ranks: the same one in every replica, different ones in some, or unknown ones.
LinkMachines link_machines(const Trace& trace, int32_t stage, int32_t other_stage);
// Returns whether this is a profile of hosts alone: its rows have facts, and none is of a device.
bool of_hosts_alone(const Trace& trace);

// Whether a trace has communication and nothing else (NCCL Inspector's logs), as open_trace() found and noted: nothing
// says what computing covers, or how long devices are idle.
inline bool is_only_communication(const Trace& trace) {
  return trace.diagnostics.count("source.only_communication") > 0;
}

// Brings Trace::lossy_steps in order, each step once.
inline void settle_lossy_steps(Trace& trace) {
  std::vector<int32_t>& steps = trace.lossy_steps;
  sort_unique(steps);
}

}  // namespace stageline
