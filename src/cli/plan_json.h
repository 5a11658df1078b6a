// The answer of the command plan as JSON, "stageline-plan-1".
#pragma once

#include "cli/plan_answer.h"

namespace stageline {

std::string plan_json(const PlanAnswer& answer);

}  // namespace stageline
