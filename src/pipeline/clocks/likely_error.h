// How far the clocks chosen are likely off: an estimate beside the bounds that are proven.
//
// Of one tie, what its offset is likely wrong by has three sources, added as squares:
//
//   scatter      of its samples about its line, over the root of their number (TieFit::offset_sigma); a quarter of the
//                room between the bounds where the line is the middle of that room
//   asymmetry    half of what one way may take longer than the other. Nobody can measure it; the mean of what a message
//                takes after its sender is done, both ways, is what it would be if one way took all of that and the
//                other nothing. Taken as spread evenly up to there: its mean over the root of three
//   slope        the error of its slope times how far the middle of its samples is from the middle of the run
//
// Of a clock: the root of the sum of these squares along the best way to the reference (other ways only make it
// better). Where ties form cycles, least squares leave residuals; when these are larger than the ties' own errors
// explain, all errors of the group grow by that factor (Birge 1932), for ties are then worse than they say.
#pragma once

#include <vector>

#include "pipeline/clocks/clock_edge.h"

namespace stageline::align {

// Fills NodeClock::offset_error and drift_error of a solution whose clocks and roots are known. Errors are never more
// than the bound allows. O(edges log nodes).
void set_likely_errors(const std::vector<Edge>& edges, Solution& solution);

}  // namespace stageline::align
