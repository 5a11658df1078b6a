// The problems that analyses/stragglers reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(stragglers, no_peers, kInfo);
PROBLEM(stragglers, no_places, kInfo);
PROBLEM(stragglers, no_s_w, kInfo);
PROBLEM(stragglers, none, kInfo);

}  // namespace stageline::problem
