// The list of schedules (see schedules.def): each a pure function from sizes to order per rank.
#pragma once

#include <string_view>
#include <vector>

#include "model/schedule.h"

namespace stageline {

const std::vector<const ScheduleDef*>& schedules();
const ScheduleDef* find_schedule(std::string_view name);  // nullptr when there is none; `_` serves for `-`

}  // namespace stageline
