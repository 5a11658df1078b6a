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

// Gives forwards and backwards of a rank their chunk and micro-batch by Megatron's interleaved order. It starts with
// 2(p − 1 − r) + (v − 1)p forwards, then a forward and a backward in turn, then the other backwards. Groups of p
// micro-batches go through the chunks one after another. Returns v; 0, and changes nothing, where a step has another
// order or one that fits several v. `stage` is r and `stages` is p. O(n log n).
int32_t number_interleaved(const std::vector<uint32_t>& order, int32_t stage, int32_t stages,
                           std::vector<CellMark>& marks);

// Numbers the messages of such a rank, once its work is numbered: neighbours send and receive in the order of their
// work. `sent` says which marks of messages were sent at all. Where a step has more or fewer messages than work that
// needs them, they stay as they are.
void number_interleaved_messages(const std::vector<uint32_t>& order, const std::vector<bool>& sent, int32_t stage,
                                 int32_t stages, int32_t chunks, std::vector<CellMark>& marks);

}  // namespace stageline
