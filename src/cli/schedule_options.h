// The flags that schedule and simulate share: which schedule, its sizes, and its costs.
#pragma once

#include "cli/flags.h"
#include "model/schedule.h"

namespace stageline {

// Returns the schedule that the first operand names, with --stages, --micro-batches, --chunks, --group, --dw-detach and
// --plan-cost. Errors: kUsage.
Result<Schedule> schedule_of(const Arguments& arguments);

// Reads --cost and --latency. Two costs are F,B (B is divided into halves), three are F,I,W (B is their sum), and a
// fourth is F&B. Costs are above 0 and at most an hour. Errors: kUsage with the accepted forms.
Result<UnitCosts> costs_of(const Arguments& arguments, UnitCosts costs);

}  // namespace stageline
