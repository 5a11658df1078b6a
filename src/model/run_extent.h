// What people are told of a run's sizes and times, where Extent's highest values are not it.
#pragma once

#include <cstdint>

#include "model/trace.h"

namespace stageline {

// Different micro-batches in one step, of most steps; of equally common numbers the largest. Labels may be any: 100,
// 107 and 149 are three. Expects sorted cells. O(cells), where labels are far larger than their number O(cells log
// cells).
int32_t micro_batches_per_step(const Trace& trace);

// What axes call 0: the first start of a cell on common time, without cells of a slice; 0 of an empty trace. O(cells),
// without them O(lanes).
int64_t axis_zero_ns(const Trace& trace);

}  // namespace stageline
