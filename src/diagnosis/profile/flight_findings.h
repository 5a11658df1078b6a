// What a flight recorder's dumps say: which rank hangs, where, since when; which calls do not fit each other.
#pragma once

#include <vector>

#include "diagnosis/causes/findings.h"
#include "facts/run.h"

namespace stageline {

// Findings "collective.missing", "collective.mismatch", "collective.stuck" and "collective.cycle", the first of each
// group and cause; none where all calls fit and are through. Definitions: docs/analyses/flight-recorder.md.
Findings flight_findings(const Run& run);

}  // namespace stageline
