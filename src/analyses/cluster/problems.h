// The problems that analyses/cluster reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(ascend, level_none, kInfo);
PROBLEM(communication, members_missing, kInfo);
PROBLEM(communication, no_counterpart, kInfo);
PROBLEM(communication, no_tasks, kInfo);
PROBLEM(communication, not_synchronising, kInfo);
PROBLEM(slow_link, no_tasks, kInfo);

}  // namespace stageline::problem
