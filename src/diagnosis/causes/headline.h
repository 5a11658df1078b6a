// The first lines of a report: what a step takes, how much of it is not computing, and where that went.
#pragma once

#include <vector>

#include "diagnosis/causes/finding_facts.h"
#include "model/finding.h"
#include "pipeline/measure/waterfall.h"
#include "pipeline/order/recognise.h"

namespace stageline {

// The parts are those of the waterfall, as shares of the mean step. They are compute, waiting and what lies outside the
// pipeline where there is no waterfall, where what more than kMostUnknownWaits of the cells wait for was not recorded,
// and where a replay of the run's own times misses its steps (`replays` is false): the waterfall follows from replays.
inline constexpr double kMostUnknownWaits = 0.1;
Headline headline_of(const FindingFacts& facts, const Recognition& recognition, const Waterfall& waterfall,
                     bool replays);

}  // namespace stageline
