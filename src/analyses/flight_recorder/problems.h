// The problems that analyses/flight_recorder reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(flight_recorder, overwritten, kInfo);

}  // namespace stageline::problem
