// Findings from flight-recorder dumps: which rank hangs, where and since when, and which calls mismatch.
#pragma once

#include "diagnosis/causes/findings.h"
#include "facts/run.h"

namespace stageline {

// Findings "collective.missing", "collective.mismatch", "collective.stuck" and "collective.cycle", the first one for
// each group and cause; none where all calls fit and have completed. Definitions: docs/analyses/flight-recorder.md.
Findings flight_findings(const Run& run);

}  // namespace stageline
