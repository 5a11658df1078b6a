// What of two runs is compared, operator by operator.
#pragma once

#include <cstdint>
#include <vector>

namespace stageline {

enum class DeviceSide : uint8_t { kAll, kHost, kDevice };

struct DiffOptions {
  std::vector<int32_t> control_ranks, test_ranks;  // empty: the default
  std::vector<int32_t> control_steps, test_steps;
  DeviceSide side = DeviceSide::kAll;
  bool short_names = false;
  bool include_last_step = false;
};

}  // namespace stageline
