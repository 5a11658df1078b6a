// Makes the first lines of a report: the step time, the share of it that is not computing, and its parts.
#pragma once

#include "diagnosis/causes/finding_facts.h"
#include "model/finding.h"
#include "pipeline/measure/waterfall.h"
#include "pipeline/order/recognise.h"

namespace stageline {

// The parts of a step are the waterfall's, as shares of the mean step. In three cases they are only compute, waiting
// and time outside the pipeline. There may be no waterfall, or more than kMaxUnknownWaits of the cells wait for
// something that was not recorded. Or a replay with the run's own times does not reproduce its steps (`replays` is
// false). The last case matters because the waterfall is made of replays.
inline constexpr double kMaxUnknownWaits = 0.1;
Headline headline_of(const FindingFacts& facts, const Recognition& recognition, const Waterfall& waterfall,
                     bool replays);

}  // namespace stageline
