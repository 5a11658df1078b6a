// The first place where a list leaves its schedule, and that place in words.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/words.h"
#include "pipeline/order/rank_lists.h"

namespace stageline {

// Where lists first leave the recognised schedule, equal ones together.
struct Divergence {
  int32_t stage = 0;
  int64_t lists = 0;                   // how many (step, replica, rank) leave it here in this way
  int32_t step = 0, dp = 0, part = 0;  // the first of them
  int64_t position = 0;                // among the forwards and backwards of the list, from 0
  std::string expected, found;         // "F3", with several chunks "F3.c1"; "" where a list has ended
  bool is_order = false;               // both are there, in the other order: not a gap in the recording
  Text sentence;
};

// Both lists hold forwards and backwards only. Fills position, expected, found, is_order and the sentences (without
// rank or step). nullopt when the lists are equal. `label`, where given, says what the trace calls a micro-batch of a
// chunk. O(length).
using MicroBatchLabel = std::function<int32_t(int32_t micro_batch, int32_t chunk)>;
std::optional<Divergence> first_divergence(std::span<const WorkToken> expected, std::span<const WorkToken> found,
                                           bool with_chunk, const MicroBatchLabel& label = {});

}  // namespace stageline
