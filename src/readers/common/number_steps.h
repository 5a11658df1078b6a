// Numbers the steps of a source without step numbers, by what repeats. In a step every rank does each forward and each
// backward once, so the third F of micro-batch 2 on a rank belongs to the third step. This holds only if all work of
// the third round comes after all work of the second.
#pragma once

#include <string_view>
#include <vector>

#include "readers/common/ops.h"

namespace stageline {

// Expects that ranks are resolved and that no op has a step. If every (rank, kind, chunk, micro-batch) of the compute
// occurs equally often, and on every rank one round ends before the next begins, the rounds become steps 0, 1, …
// Compute and messages belong to their round, everything else to the round in which it starts. Otherwise everything is
// step 0; if work repeats, a warning ("<format>.steps_missing") reports missing steps. O(ops log ops).
void number_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Diagnostics& diagnostics);

// Settles steps and micro-batches of ops: what the source gives is kept, and what it leaves out is found where
// possible.

// Expects resolved ranks. Where no op has a step, steps are numbered by what repeats, as above; then missing
// micro-batches are numbered, and steps whose clock restarts are laid end to end. `unit` is what messages call an
// operation of this source: "event", "row". Trace::lossy_steps may be in any order before.
void settle_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Trace& trace);

}  // namespace stageline
