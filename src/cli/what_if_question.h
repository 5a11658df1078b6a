// Reads from flags what is asked of a replay. `stageline what-if` and the Python package share it.
#pragma once

#include "cli/flags.h"
#include "engine/what_if_question.h"

namespace stageline {

// Errors: kUsage naming the flag.
Result<WhatIfQuestion> what_if_question(const Arguments& arguments);

}  // namespace stageline
