// Settles steps and micro-batches of ops: what the source gives is kept, and what it leaves out is found where
// possible.
#pragma once

#include <string_view>
#include <vector>

#include "readers/common/ops.h"

namespace stageline {

// Expects resolved ranks. Where no op has a step, steps are numbered by what repeats (number_steps.h); then missing
// micro-batches are numbered, and steps whose clock restarts are laid end to end. `unit` is what messages call an
// operation of this source: "event", "row". Trace::lossy_steps may be in any order before.
void settle_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Trace& trace);

}  // namespace stageline
