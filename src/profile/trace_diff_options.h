// Defines which ranks and steps of two runs are compared, operator by operator.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

enum class DeviceSide : uint8_t { kAll, kHost, kDevice };

struct DiffOptions {
  std::vector<int32_t> control_ranks, test_ranks;  // empty for the default
  std::vector<int32_t> control_steps, test_steps;
  DeviceSide side = DeviceSide::kAll;
  bool short_names = false;
  bool include_last_step = false;
};

}  // namespace stageline
