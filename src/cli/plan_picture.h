// A plan as a picture: its step as `stageline schedule` draws it, the memory of its stages, and the front of plans.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "cli/plan_question.h"
#include "cli/terminal.h"

namespace stageline {

// The kind of picture or page that --to or the name of --output asks for; "": none.
std::string picture_kind(const Arguments& arguments);

// Draws the first plan or, where nothing fits, the one that misses least. Expects one of them. Errors: kUsage for
// --width; those of export_run().
Status draw_plan(const PlanAnswer& answer, const Arguments& arguments, const Terminal& terminal);

}  // namespace stageline
