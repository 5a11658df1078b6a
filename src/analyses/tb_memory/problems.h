// The problems that analyses/tb_memory reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(memory, lost_free, kInfo);
PROBLEM(memory, more_devices, kInfo);
PROBLEM(memory, no_address, kInfo);
PROBLEM(memory, outside, kInfo);

}  // namespace stageline::problem
