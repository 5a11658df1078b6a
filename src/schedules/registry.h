// The list of schedules (see schedules.def); each is a pure function from sizes to the order of every rank.
#pragma once

#include <string_view>
#include <vector>

#include "model/schedule.h"

namespace stageline {

const std::vector<const ScheduleDef*>& schedules();
const ScheduleDef* find_schedule(std::string_view name);  // nullptr when there is none; the name may have `_` for `-`

}  // namespace stageline
