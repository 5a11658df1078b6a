// Findings of profiler traces: the headline, the span as a bar, and what to do.
#pragma once

#include "diagnosis/causes/findings.h"
#include "diagnosis/profile/rank_losses.h"
#include "facts/profile_sums.h"
#include "model/trace.h"

namespace stageline {

// Returns the findings. `account` is of the ranks with device work; without it, idle time has causes and no owners.
// Definitions and thresholds are in docs/analyses/findings.md.
Findings profile_findings(const Trace& trace, const ProfileSums& sums, const ProfileAccount& account = {});

}  // namespace stageline
