// The first place where a list leaves its schedule, and that place in words.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "pipeline/rank_lists.h"
#include "pipeline/recognise.h"

namespace stageline {

// Both lists hold forwards and backwards only. Fills position, expected, found, is_order and the sentences (without
// rank or step). nullopt when the lists are equal. `label`, where given, says what the trace calls a micro-batch of a
// chunk. O(length).
using MicroBatchLabel = std::function<int32_t(int32_t micro_batch, int32_t chunk)>;
std::optional<Divergence> first_divergence(std::span<const WorkToken> expected, std::span<const WorkToken> found,
                                           bool with_chunk, const MicroBatchLabel& label = {});

}  // namespace stageline
