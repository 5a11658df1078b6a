// The largest amount of device memory that a recording shows for each stage of a pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stageline {

// Returns the most bytes that the framework had allocated on a device of this rank; −1 where nothing says it. They come
// from torch's [memory] events with totals, Ascend's memory tables, and counters of a program that have the names of
// torch's functions, memory_allocated or max_memory_allocated. O(records).
int64_t peak_device_memory(const Part& part);

// Returns for each stage the largest peak of its ranks; −1 where none is known. Empty where no rank has any.
std::vector<int64_t> peak_memory_of_stages(const Trace& trace);

}  // namespace stageline
