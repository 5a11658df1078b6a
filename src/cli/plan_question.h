// The command plan as a question, and its answer in every form. Python and agents ask in the same way.
#pragma once

#include "cli/plan_from_run.h"

namespace stageline {

// Reads flags and description, and searches. Errors: kUsage naming the flag, kBadInput naming the key of the
// description.
Result<PlanAnswer> answer_plan(const Arguments& arguments, const Terminal& terminal, const PlanGiven& given = {});
// Returns the same in JSON without a line's end, for flags as they are typed.
Result<std::string> planned_json(const std::vector<std::string>& flags, const PlanGiven& given = {});

}  // namespace stageline
