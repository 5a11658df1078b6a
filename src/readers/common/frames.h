// Python frames as PyTorch's dumps have them: [{name, filename, line}], innermost first.
#pragma once

#include <string>

#include "base/value_tree.h"

namespace stageline {

// "train.py(31): step;train.py(90): main": as torch's own "Call stack" has it; at most 128 frames.
std::string stack_text(Value frames);

}  // namespace stageline
