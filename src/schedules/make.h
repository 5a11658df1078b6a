// Builds a schedule by name after checking the sizes.
#pragma once

#include <string_view>

#include "schedules/registry.h"

namespace stageline {

// The schedule of that name; `_` may stand for `-`. Errors: kUsage, with the nearest name.
Result<const ScheduleDef*> schedule_named(std::string_view name);

// Limits: 1 … 4096 stages, 1 … 65536 micro-batches, 1 … 64 chunks (and no more than the schedule allows), groups up to
// 65536, at most 2^23 forwards in all. Time and memory grow linearly with the forwards, at about 30 bytes per cell.
// Errors: kUsage, naming the size and what the schedule allows; kLimit.
Result<Schedule> make_schedule(std::string_view name, const ScheduleSizes& sizes);

}  // namespace stageline
