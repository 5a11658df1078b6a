// The schedules by name, for code that offers them as choices and may not include the layer that makes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

struct ScheduleOffer {
  std::string name;
  int32_t chunks = 1;  // chunks per rank when none are asked for
};
std::vector<ScheduleOffer> schedule_list();  // in the order of schedules.def
bool knows_schedule(std::string_view name);

}  // namespace stageline
