// The problems that server/page reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(view, no_event_tables, kInfo);

}  // namespace stageline::problem
