// Sizes and times of a run as users see them. Extent gives highest values, which mislead where labels are not 0, 1,
// ….
#pragma once

#include <cstdint>

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

}  // namespace stageline
