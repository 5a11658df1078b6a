// Traces of single ranks become one trace of a run.
#pragma once

#include "model/trace.h"

namespace stageline {

// Appends the part of `one`, a trace of one rank, with its cells, names, categories and diagnostics. Call it in rank
// order: names then get the ids that reading the ranks together would give them, and cells only need to be sorted.
void join_rank(Trace& trace, Trace one);

}  // namespace stageline
