// The problems that analyses/memory_categories reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(memory, guessed, kInfo);

}  // namespace stageline::problem
