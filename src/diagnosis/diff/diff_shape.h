// What two runs are, apart from their times: schedule and sizes, and how these differ. Part of run_diff.
#pragma once

#include "diagnosis/diff/diff_answer.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

// Fills diff.a and diff.b (sizes and schedule) and diff.changes: another schedule, other stages, chunks, micro-batches,
// replicas or ranks, messages recorded in one run only, and lists that follow the schedule in one run and leave it in
// the other. O(cells) beyond recognise().
void describe_shapes(const Trace& a, const StepGraph& graph_a, const Trace& b, const StepGraph& graph_b, RunDiff& diff);

}  // namespace stageline
