// The answer of `stageline info` as text for people.
#pragma once

#include <string>

#include "model/trace.h"

namespace stageline {

// Returns one line for each thing that was found, and what was wrong with it.
std::string info_text(const Trace& trace);

}  // namespace stageline
