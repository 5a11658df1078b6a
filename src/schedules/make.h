// Builds a schedule by name after checking the sizes.
#pragma once

#include <string_view>

#include "schedules/registry.h"

namespace stageline {

// Limits: 1 … 4096 stages, 1 … 65536 micro-batches, 1 … 64 chunks, at most 2^24 actions in all.
// Errors: kUsage, naming the size and what the schedule allows.
Result<Schedule> make_schedule(std::string_view name, const ScheduleSizes& sizes);

}  // namespace stageline
