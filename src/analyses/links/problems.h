// The problems that analyses/links reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(links, gaps, kInfo);
PROBLEM(links, none, kInfo);
PROBLEM(links, way_unknown, kInfo);

}  // namespace stageline::problem
