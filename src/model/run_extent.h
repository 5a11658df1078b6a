// Sizes and times of a run as people are told them. Extent gives highest values, which mislead where labels are not 0,
// 1, ….
#pragma once

#include <cstdint>

#include "model/trace.h"

namespace stageline {

// Returns how many different micro-batches most steps have; of equally common numbers, the largest. Labels may be any
// numbers: 100, 107 and 149 are three micro-batches. Expects sorted cells. O(cells); O(cells log cells) where the
// highest label is far above the number of cells.
int32_t micro_batches_per_step(const Trace& trace);

// Returns the common time that axes call 0: the first start of a cell, or of a slice where there are no cells; 0 for an
// empty trace. O(cells); O(lanes) without cells.
int64_t axis_zero_ns(const Trace& trace);

}  // namespace stageline
