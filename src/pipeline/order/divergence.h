// Finds the first deviation of a rank's operation order from its schedule, and describes it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/words.h"
#include "pipeline/order/rank_lists.h"

namespace stageline {

// A place where lists first leave the recognised schedule; lists that leave it in the same way are counted together.
struct Divergence {
  int32_t stage = 0;
  int64_t lists = 0;                   // how many lists (step, replica, rank) leave the schedule here in this way
  int32_t step = 0, dp = 0, part = 0;  // the first such list
  int64_t position = 0;                // counted among the forwards and backwards of the list, from 0
  std::string expected, found;         // "F3", with several chunks "F3.c1"; "" where that list has ended
  bool is_order = false;  // both cells are in the list, in the other order; so the recording has no gap there
  Text sentence;
};

// Compares two lists that hold forwards and backwards only. Fills position, expected, found, is_order and the
// sentences, without rank or step; nullopt when the lists are equal. `label`, where given, returns what the trace calls
// a micro-batch of a chunk. O(length).
using MicroBatchLabel = std::function<int32_t(int32_t micro_batch, int32_t chunk)>;
std::optional<Divergence> first_divergence(std::span<const WorkToken> expected, std::span<const WorkToken> found,
                                           bool with_chunk, const MicroBatchLabel& label = {});

}  // namespace stageline
