// The flags that schedule and simulate share: which schedule, how large, at what costs.
#pragma once

#include "cli/flags.h"
#include "model/schedule.h"

namespace stageline {

// The schedule of the first operand with --stages, --micro-batches, --chunks, --group, --dw-detach, --plan-cost.
// Errors: kUsage.
Result<Schedule> schedule_of(const Arguments& arguments);

// --cost and --latency. Two costs are F,B (B in halves), three are F,I,W (B their sum), a fourth is F&B.
// Errors: kUsage with the forms; costs are above 0 and at most an hour.
Result<UnitCosts> costs_of(const Arguments& arguments, UnitCosts costs);

}  // namespace stageline
