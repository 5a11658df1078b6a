// Estimates the likely error of the chosen clocks; the proven bounds are reported with this estimate.
//
// The likely error of one tie's offset has three sources, which are added as squares:
//
//   scatter      of its samples about its line, divided by the root of their number (TieFit::offset_sigma); a quarter
//                of the room between the bounds where the line is the middle of that room
//   asymmetry    half of the difference between what the two ways take. Nobody can measure it. If one way took all of
//                the measured time and the other none, it would be the mean over both ways of what a message takes
//                after its sender is done. It is taken as evenly spread from 0 to there: that value over the root of
//                three
//   slope        the error of the slope times the distance of the samples' middle from the middle of the run
//
// The error of a clock is the root of the sum of these squares along the best path to the reference; further paths
// could only improve it. Where ties form cycles, least squares leave residuals. When these are larger than the ties'
// own errors explain, the ties are worse than they claim, and all errors of the group grow by that factor (Birge 1932).
#pragma once

#include <vector>

#include "pipeline/clocks/clock_edge.h"

namespace stageline::align {

// Fills NodeClock::offset_error and drift_error of a solution whose clocks and roots are known. An error is never
// larger than the bound allows. O(edges log nodes).
void set_likely_errors(const std::vector<Edge>& edges, Solution& solution);

}  // namespace stageline::align
