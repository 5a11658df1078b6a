// The problems that analyses/roofline reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(roofline, device_unknown, kInfo);
PROBLEM(roofline, on_host, kInfo);
PROBLEM(roofline, work_unknown, kInfo);

}  // namespace stageline::problem
