// The answer of `stageline info` for people.
#pragma once

#include <string>

#include "model/trace.h"

namespace stageline {

// What was found, a line each, and what was wrong with it.
std::string info_text(const Trace& trace);

}  // namespace stageline
