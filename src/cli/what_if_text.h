// The answer of `stageline what-if` for people.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "diagnosis/what_if/what_if_fixes.h"

namespace stageline {

// The sentence, what it stands on, then the fixes: each with its price, what that assumes and how to make it.
std::string what_if_text(const WhatIf& model, const FixList& list, const Terminal& terminal);

}  // namespace stageline
