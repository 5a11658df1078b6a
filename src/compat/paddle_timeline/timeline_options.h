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
  bool multi_machine = false;                   // log_dir holds a folder for each machine
  bool compat_v3 = false;        // writes the output of Paddle's V3 script, with its errors; fails where V3 raises one
  Progress* progress = nullptr;  // shows how far reading is; not owned, null: progress is not shown
};

}  // namespace stageline
