// Finds steps and micro-batches of marks whose names do not give them.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/torch_marks.h"

namespace stageline {

enum class StepSource : uint8_t { kProfiler, kNamed, kRepetition, kOptimizer, kOne };

// Gives every mark of a part its step by the first of these that exists. ProfilerStep rows come first. Then come step
// marks (`steps`, in order of start), by their own numbers or else their positions, then repeated micro-batches, then
// optimizer steps between. Without any of them all marks are step 0. Marks outside the steps found get kUnknown.
// `order` is the part's marks in order of start.
StepSource number_steps(const Part& part, const std::vector<StepMark>& steps, const std::vector<uint32_t>& order,
                        std::vector<CellMark>& marks);

// Numbers micro-batches within each (step, direction, stage, chunk) where no mark of it has a number: the k-th becomes
// k. Pieces (CellMark::piece) get none. Returns how many marks were numbered. O(n log n).
int64_t number_micro_batches(const std::vector<uint32_t>& order, std::vector<CellMark>& marks);

}  // namespace stageline
