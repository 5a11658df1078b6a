// Finds which ranks hold up the others (pipeline/measure/stragglers), as a fact of a run.
#pragma once

#include "facts/run.h"
#include "pipeline/measure/stragglers.h"

namespace stageline {

// Computed on the graph of LaunchRule::kFree, which must exist (RunGraph::graph). S_w is not in it; slowdown_of() has
// it.
const Stragglers& stragglers_of(const Run& run);

}  // namespace stageline
