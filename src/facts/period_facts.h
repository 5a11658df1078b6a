// The time between steps, as a fact of a run.
#pragma once

#include "facts/run.h"
#include "pipeline/measure/step_periods.h"

namespace stageline {

const StepPeriods& periods_of(const Run& run);

}  // namespace stageline
