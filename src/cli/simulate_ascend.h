// Flags of simulate --format ascend: the shape of the cluster and the settings of the profiler.
#pragma once

#include "cli/flags.h"
#include "exporters/ascend_db/ascend_db.h"
#include "pipeline/simulate/simulate.h"

namespace stageline {

// Reads the flags, and adds to `run` what the shape implies: peers, rank numbers, times between steps. Errors: kUsage.
Result<AscendDbOptions> ascend_options_of(const Arguments& arguments, SimulateOptions& run);

// Returns the first given flag that only --format ascend has; "" when there is none.
std::string ascend_only_flag(const Arguments& arguments);

}  // namespace stageline
