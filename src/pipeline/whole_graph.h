// The step graph that explains whole steps: of recorded operations where these say what a step's end waits for, else of
// compute cells.
#pragma once

#include "pipeline/step_graph.h"

namespace stageline {

// build_step_graph(), except where its rules for recorded operations leave out what holds this trace together: split or
// overlapped backwards, which they do not know, and optimizers that wait for all ranks with no operation that says so
// (no clipping of gradients was recorded). There waits come from compute cells, and messages from the gaps between
// them. The same where the operations that a rule knows leave out so much that their replay misses the recorded steps
// by more than 1 %. Errors and cost as there, and kBadInput when the compute cells' replay misses them too: no cause
// may be found on such a graph.
Result<StepGraph> build_whole_graph(const Trace& trace, Diagnostics& notes);

}  // namespace stageline
