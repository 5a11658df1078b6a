// The options of the drop-in for Paddle's script.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"

namespace stageline {

struct PaddleTimelineOptions {
  std::string log_dir;
  std::optional<std::vector<int32_t>> devices;  // in the given order; when absent, all that are found
  bool multi_machine = false;
  bool compat_v3 = false;  // writes V3's output whatever it is, and fails where V3 raises an exception
  Progress* progress = nullptr;
};

}  // namespace stageline
