// What is asked of a replay, from flags: `stageline what-if` and the Python package ask the same way.
#pragma once

#include "cli/flags.h"
#include "engine/what_if_question.h"

namespace stageline {

// Errors: kUsage naming the flag.
Result<WhatIfQuestion> what_if_question(const Arguments& arguments);

}  // namespace stageline
