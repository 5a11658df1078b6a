// Reads Python frames as PyTorch's dumps write them: [{name, filename, line}], innermost first.
#pragma once

#include "base/value_tree.h"

namespace stageline {

// Returns the frames as torch writes "Call stack", "train.py(31): step;train.py(90): main"; at most 128 frames,
// without those at the beginning that took the stack.
std::string stack_text(Value frames);

}  // namespace stageline
