// StepTaskInfo: the table from which MindStudio Insight draws a pipeline chart. It has one row for each block of work
// on the device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stageline {

struct StepTask {
  int64_t start_ns = 0, end_ns = 0;
  uint32_t name = 0;  // index into StepTasks::names
  int32_t type = 0;   // the colour: 0 forward, 1 backward; for DualPipeV the phase (dualpipev_rows.h)
};

struct StepTasks {
  std::vector<std::string> names;
  std::vector<StepTask> rows;  // in the order in which they are written

  uint32_t name_id(std::string_view name) {
    const auto [at, fresh] = ids_.try_emplace(std::string(name), static_cast<uint32_t>(names.size()));
    if (fresh) names.emplace_back(name);
    return at->second;
  }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace stageline
