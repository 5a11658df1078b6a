// Causes outside the pipeline: time between steps, and collectives and optimizers that no compute hides. Part of
// causes.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/causes/cause_drafts.h"
#include "pipeline/measure/step_periods.h"

namespace stageline {

// Share of a period; a usual gap that is shorter is only a line of the account.
inline constexpr double kMinGap = 0.02;
// The same for one kind of collective, or the optimizer, at the end of a step.
inline constexpr double kMinTail = 0.05;

// For every name in the gaps, one cause for what each usual step waits, and one for what a few steps wait beyond that;
// lost_ns is a mean over all periods. Prices are sums of recorded times, since nothing else runs there.
std::vector<Cause> between_causes(const StepPeriods& periods);

// Drafts, for each name, a world without the time of collectives and optimizers that end after their rank's last
// compute cell of a step or begin before its first one.
void draft_tails(const CauseScene& scene, std::vector<CauseDraft>& out);

}  // namespace stageline
