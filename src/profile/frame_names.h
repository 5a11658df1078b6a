// Names of Python frames as people type them: "train.py(57): load_batch" is line train.py:57 of the program.
#pragma once

#include <string>
#include <string_view>

#include "model/trace.h"

namespace stageline {

// Returns whether a frame is of the program, not of torch or Python's own library.
bool is_own_frame(std::string_view name);
// Returns "base.py:57" of "transformers/pipelines/base.py(57): load"; "" of a frame without a line.
std::string frame_line(std::string_view frame);
// Returns "sleep" of "<built-in function sleep>", "collect" of "<built-in method collect of T object at 0x7f12>"; other
// names as they are.
std::string built_in_name(std::string_view name);
// Returns the slice and the line of the program that it runs in, as far as frames around it say: "sleep (train.py:57)".
std::string name_with_line(const Trace& trace, const Part& part, uint32_t slice);

}  // namespace stageline
