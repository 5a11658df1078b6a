// Finds cells whose timestamps contradict those of their own rank: a wrong unit, an end that was never written, a
// timestamp of another clock. One such row can make a step appear to take three years.
#pragma once

#include "model/trace.h"

namespace stageline {

// Takes cells out that cannot have run when they say, and counts each as a loss, "cells.impossible_times":
//
// - A rank does its steps one after another. This is so when three quarters of its cells of one step are over before
//   three quarters of the next one's start. Then a forward or backward is not of its step in two cases: it still
//   runs when all of its rank's next step is done, or it started before any cell of the previous step. So rows are
//   judged only with others of their step: a rank that hangs, or whose clock jumps, moves everything that comes after.
// - All ranks' steps together last at most 2^60 ns (36 years), so that sums of them are exact. Otherwise cells are
//   dropped that take more than a step's share of it, or are further than that from the middle of their step.
//
// Slices stay, and so does everything that is drawn of them. Cells must be sorted. O(cells).
void drop_impossible_times(Trace& trace);

}  // namespace stageline
