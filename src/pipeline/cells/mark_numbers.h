// Steps and micro-batches of marks, where names do not say them.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/torch_marks.h"

namespace stageline {

enum class StepSource : uint8_t { kProfiler, kNamed, kRepetition, kOptimizer, kOne };

// Gives every mark of a part its step, by the first of: ProfilerStep rows; step marks (`steps`, by start) – their
// own numbers, else their positions –; micro-batches that come again; optimizer steps between; else all are step 0.
// Marks outside of the steps there are get kUnknown. `order`: the part's marks by start.
StepSource number_steps(const Part& part, const std::vector<StepMark>& steps, const std::vector<uint32_t>& order,
                        std::vector<CellMark>& marks);

// Counts micro-batches within (step, forward or backward or weight …, stage, chunk) where none of them has a number:
// the k-th is k. Pieces stay without. Returns how many were counted. O(n log n).
int64_t number_micro_batches(const std::vector<uint32_t>& order, std::vector<CellMark>& marks);

}  // namespace stageline
