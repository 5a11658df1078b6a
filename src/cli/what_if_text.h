// The answer of `stageline what-if` as text for people.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "diagnosis/what_if/what_if_fixes.h"

namespace stageline {

// Returns the main sentence and what it is based on, then the fixes: each with its price, its assumptions and how to
// make it.
std::string what_if_text(const WhatIf& model, const FixList& list, const Terminal& terminal);

}  // namespace stageline
