// Causes outside the pipeline: what lies between steps, and what of collectives and optimizer no compute hides.
// Part of causes.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/causes/cause_drafts.h"
#include "pipeline/measure/step_periods.h"

namespace stageline {

inline constexpr double kLeastGap = 0.02;   // of a period: a shorter usual gap between steps is an account's line alone
inline constexpr double kLeastTail = 0.05;  // likewise of one kind of collective, or the optimizer, at the step's end

// Of every name in the gaps one cause for what each usual step waits, and one for what a few steps wait beyond that;
// lost_ns is a mean over all periods. Prices are sums of what was recorded: nothing else runs there.
std::vector<Cause> between_causes(const StepPeriods& periods);

// Collectives and optimizers that end after their rank's last compute cell of a step, or begin before its first one, by
// name: worlds in which they take no time.
void draft_tails(const CauseScene& scene, std::vector<CauseDraft>& out);

}  // namespace stageline
