// Joins traces of single ranks into one trace of a run.
#pragma once

#include <vector>

#include "model/trace.h"

namespace stageline {

// Appends the part of `one`, a trace of one rank, with its cells, names, categories and diagnostics. Ranks must be
// joined in ascending order: then names get the same ids as when all ranks are read together, and cells only need
// sorting.
void join_rank(Trace& trace, Trace one);
// The same for several, in their order. Their cells are copied on all threads.
void join_ranks(Trace& trace, std::vector<Trace> ranks);

}  // namespace stageline
