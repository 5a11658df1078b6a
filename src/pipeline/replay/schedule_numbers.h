// What an order costs: span, both bubbles, activations held, from a replay.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/replay/replay.h"

namespace stageline {

struct RankNumbers {
  int64_t busy_ns = 0;            // sum of the cells
  int64_t span_bubble_ns = 0;     // span of the whole pipeline − busy
  int64_t inner_bubble_ns = 0;    // own first start to own last end − busy
  int32_t activations = 0;        // most chunks held at once: from F to B or W
  int32_t activations_input = 0;  // the same, given back with I already
};

struct ScheduleNumbers {
  int64_t span_ns = 0;  // first start to last end over all ranks
  std::vector<RankNumbers> ranks;
  int64_t max_span_bubble_ns = 0, max_inner_bubble_ns = 0;
  int32_t max_activations = 0;
};

ScheduleNumbers schedule_numbers(const Schedule& schedule, const std::vector<std::vector<ReplayedCell>>& times);

// replay() with the same costs on every rank.
Result<std::vector<std::vector<ReplayedCell>>> replay(const Schedule& schedule, const UnitCosts& costs);

}  // namespace stageline
