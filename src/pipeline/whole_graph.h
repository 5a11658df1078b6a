// The step graph that explains whole steps: of recorded operations where these say what a step's end waits for, else of
// compute cells.
#pragma once

#include "pipeline/step_graph.h"

namespace stageline {

// build_step_graph(), except where its rules for recorded operations leave out what holds this trace together: split or
// overlapped backwards, which they do not know, and optimizers that wait for all ranks with no operation that says so
// (no clipping of gradients was recorded). There waits come from compute cells, and messages from the gaps between
// them. Errors and cost as there. `as_step_graph` is told whether build_step_graph() makes the same one.
Result<StepGraph> build_whole_graph(const Trace& trace, Diagnostics& notes, bool* as_step_graph = nullptr);

}  // namespace stageline
