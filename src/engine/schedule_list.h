// The schedules by name, for those who offer them to choose from and may not know the layer that makes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

struct ScheduleOffer {
  std::string name;
  int32_t chunks = 1;  // a rank, where nobody says how many
};
std::vector<ScheduleOffer> schedule_list();  // in the order of schedules.def
bool knows_schedule(std::string_view name);

}  // namespace stageline
