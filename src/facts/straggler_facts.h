// Who holds the others up in a run: pipeline/measure/stragglers, made once per Run.
#pragma once

#include "facts/run.h"
#include "pipeline/measure/stragglers.h"

namespace stageline {

// On the graph of LaunchRule::kFree, which must have been made (RunGraph::graph). Without S_w, which is slowdown_of()'s.
const Stragglers& stragglers_of(const Run& run);

}  // namespace stageline
