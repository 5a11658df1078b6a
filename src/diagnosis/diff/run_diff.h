// Compares two runs: how much longer a step became, and why, group by group, with parts that add up.
//
//   step of A ── the shape of B, with A's times ──▶ schedule and sizes
//             ── B's times put in, one group after the other, those of most effect first ──▶ stage 2's backward, …
//             ── what replays do not explain ──▶ rest
//   step of B
//
// Every step of B is paired with one of A, by order. A group's effect is the change of the replay of the step graph
// (pipeline/replay/step_graph.h) when the group's times become B's, as a mean over the pairs. Its uncertainty is the
// standard error over the pairs. Definitions: docs/reference/diff.md.
#pragma once

#include "base/result.h"
#include "diagnosis/diff/diff_answer.h"
#include "model/trace.h"

namespace stageline {

// Errors: kBadInput when one of the runs ("A" or "B", which the message says) has no operations with steps, or clocks
// that cannot be compared. O(operations · log operations + operations · groups).
Result<RunDiff> diff_runs(const Trace& a, const Trace& b);

}  // namespace stageline
