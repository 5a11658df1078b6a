// Describes two runs, apart from their times: schedule and sizes, and their differences. It is part of run_diff.
#pragma once

#include "diagnosis/diff/diff_answer.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

// Fills diff.a and diff.b (sizes and schedule) and diff.changes. Changes are another schedule, other stages, chunks,
// micro-batches, replicas or ranks, and messages recorded in one run only. Lists that follow the schedule in one run
// and deviate from it in the other are changes too. O(cells) beyond recognise().
void describe_shapes(const Trace& a, const StepGraph& graph_a, const Trace& b, const StepGraph& graph_b, RunDiff& diff);

}  // namespace stageline
