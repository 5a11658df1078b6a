// What to type in a framework for a plan. Every split that is written reads back as the same split.
#pragma once

#include <string>
#include <string_view>

#include "plan/search.h"

namespace stageline::plan {

// Lines to type; the first ones are comments with what the plan costs. Errors: kUsage for a framework that is not
// known or that has no such schedule.
Result<std::string> emit_plan(std::string_view framework, const Wish& wish, const Candidate& plan);

}  // namespace stageline::plan
