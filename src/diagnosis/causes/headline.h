// The first lines of a report: what a step takes, how much of it is not computing, and where that went.
#pragma once

#include <vector>

#include "diagnosis/causes/finding_facts.h"
#include "model/finding.h"
#include "pipeline/measure/waterfall.h"
#include "pipeline/order/recognise.h"

namespace stageline {

// The parts are those of the waterfall, as shares of the mean step; where there is none, or where what more than
// kMostUnknownWaits of the cells wait for was not recorded, compute, waiting and what lies outside the pipeline.
inline constexpr double kMostUnknownWaits = 0.1;
Headline headline_of(const FindingFacts& facts, const Recognition& recognition, const Waterfall& waterfall);

}  // namespace stageline
