// Steps that a source does not number, told by what repeats: every rank does each forward and backward of a step once,
// so the third F of micro-batch 2 on a rank belongs to the third step, where all of it comes after the second.
#pragma once

#include <string_view>
#include <vector>

#include "model/ops.h"

namespace stageline {

// Expects resolved ranks and no step at all. Where every (rank, kind, chunk, micro-batch) of the compute occurs equally
// often and on every rank one round ends before the next begins, steps are 0, 1, …: compute and messages by round,
// everything else by the round in which it starts. Else everything is step 0, and where work repeats a warning says
// that steps are missing ("<format>.steps_missing"). O(ops log ops).
void number_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Diagnostics& diagnostics);

}  // namespace stageline
