// The list of schedules (see schedules.def); each is a pure function from sizes to the order of every rank.
#pragma once

#include "model/schedule.h"

namespace stageline {

const std::vector<const ScheduleDef*>& schedules();
const ScheduleDef* find_schedule(std::string_view name);  // nullptr when there is none; the name may have `_` for `-`

// The schedule of that name; `_` may stand for `-`. Errors: kUsage, with the nearest name.
Result<const ScheduleDef*> schedule_named(std::string_view name);

// Limits: 1 … 4096 stages, 1 … 65536 micro-batches, 1 … 64 chunks (and no more than the schedule allows), groups up to
// 65536, at most 2^23 forwards in all. Time and memory grow linearly with the forwards, at about 30 bytes per cell.
// Errors: kUsage, naming the size and what the schedule allows; kLimit.
Result<Schedule> make_schedule(std::string_view name, const ScheduleSizes& sizes);

}  // namespace stageline
