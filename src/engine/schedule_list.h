// The schedules by name, for the server, which offers them as choices.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct ScheduleOffer {
  std::string name;
  int32_t chunks = 1;  // chunks per rank when none are asked for
};
std::vector<ScheduleOffer> schedule_list();  // in the order of schedules.def
bool knows_schedule(std::string_view name);

}  // namespace stageline
