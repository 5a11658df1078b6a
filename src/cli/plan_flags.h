// The flags of the command plan as a wish: what is searched.
#pragma once

#include "cli/plan_from_run.h"

namespace stageline {

// Reads the flags in the order in which they need each other. These are the run of --from, the model, the batch and the
// degrees, the device, the memory, recomputation, and measured steps. Puts what a run
// shows besides its times into `answer`. Errors: kUsage naming the flag, kBadInput naming the key of the description,
// and those of reading --from.
Result<plan::Wish> wish_of(const Arguments& arguments, const Terminal& terminal, const PlanGiven& given,
                           PlanAnswer& answer);
// Reads "tp2 pp1 m8=1387ms,…": steps that were measured, of 1F1B with an even split. Degrees that are not named are 1,
// and dp is what the devices of the wish leave. Errors: kUsage.
Result<std::vector<plan::MeasuredStep>> parse_measured(const std::string& text, const plan::Wish& wish);

}  // namespace stageline
