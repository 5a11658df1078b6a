// Cells whose stamps cannot be true beside those of their own rank: a unit that was mistaken, an end that was never
// written, a stamp of another clock. One such row says that a step took three years.
#pragma once

#include "model/trace.h"

namespace stageline {

// Takes cells out that cannot have run when they say, and counts each as a loss, "cells.impossible_times":
//
// - A rank does its steps one after another. Where it does (three quarters of its cells of one step are over before
//   three quarters of the next one's begin), a forward or backward that is still under way when all of its rank's next
//   step is done, or that began before any of the step before, is none of its step's. So only rows beside others of
//   their step are judged: a rank that hangs, or whose clock jumps, moves everything that comes after.
// - All ranks' steps together last at most 2^60 ns (36 years), so that sums of them are exact. Where they do not, those
//   cells go that alone take more than a step's share of it, or lie further than that from the middle of their step.
//
// Slices stay, and so does everything that is drawn of them. Cells must be sorted. O(cells).
void drop_impossible_times(Trace& trace);

}  // namespace stageline
