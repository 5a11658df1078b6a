// The first lines of a report: what a step takes, how much of it is not computing, and where that went.
#pragma once

#include <vector>

#include "diagnosis/causes/finding_facts.h"
#include "model/finding.h"
#include "pipeline/measure/waterfall.h"
#include "pipeline/order/recognise.h"

namespace stageline {

// The parts of a step are the waterfall's, as shares of the mean step. They are only compute, waiting and time outside
// the pipeline where there is no waterfall, where more than kMaxUnknownWaits of the cells wait for something that was
// not recorded, or where a replay with the run's own times does not reproduce its steps (`replays` is false), because
// the waterfall is made of replays.
inline constexpr double kMaxUnknownWaits = 0.1;
Headline headline_of(const FindingFacts& facts, const Recognition& recognition, const Waterfall& waterfall,
                     bool replays);

}  // namespace stageline
