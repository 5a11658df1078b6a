// The steps and micro-batches of ops, from what their source says and leaves out.
#pragma once

#include <string_view>
#include <vector>

#include "model/ops.h"

namespace stageline {

// The steps and numbers of ops whose ranks are resolved: ops without any step are numbered by what repeats
// (number_steps.h), missing micro-batches are numbered, and steps whose clock restarts are laid end to end. `unit` is
// what the source calls an operation in messages: "event", "row".
void settle_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Trace& trace);

}  // namespace stageline
