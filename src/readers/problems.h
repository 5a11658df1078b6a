// The problems that readers reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(source, other_reader, kInfo);

}  // namespace stageline::problem
