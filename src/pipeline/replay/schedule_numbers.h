// The costs of an order, from a replay: span, both bubbles, and activations held.
#pragma once

#include "pipeline/replay/replay.h"

namespace stageline {

struct RankNumbers {
  int64_t busy_ns = 0;            // sum of its cells' times
  int64_t span_bubble_ns = 0;     // span of the whole pipeline − busy_ns
  int64_t inner_bubble_ns = 0;    // last end − first start of this rank − busy_ns
  int32_t activations = 0;        // the most chunks held at once, each from its F to its B or W
  int32_t activations_input = 0;  // the same if an I already frees the activations
};

struct ScheduleNumbers {
  int64_t span_ns = 0;  // from the first start to the last end over all ranks
  std::vector<RankNumbers> ranks;
  int64_t max_span_bubble_ns = 0, max_inner_bubble_ns = 0;
  int32_t max_activations = 0;
};

ScheduleNumbers schedule_numbers(const Schedule& schedule, const std::vector<std::vector<ReplayedCell>>& times);

// Replays the schedule with the same costs on every rank.
Result<std::vector<std::vector<ReplayedCell>>> replay(const Schedule& schedule, const UnitCosts& costs);

}  // namespace stageline
