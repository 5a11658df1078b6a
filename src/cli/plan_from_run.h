// The recorded run that a plan starts from: its measured times, and its degrees where no flag gives others.
#pragma once

#include "cli/plan_answer.h"
#include "cli/terminal.h"
#include "plan/recorded.h"

namespace stageline {

class WhatIf;

// Inputs of a program that embeds the question: texts and runs instead of files.
struct PlanGiven {
  std::string model;             // the text of a description
  const WhatIf* run = nullptr;   // a run to take the times from
  const Trace* trace = nullptr;  // of that run, for the memory that it measured
};

// Measures the run that is given or that --from names; nullopt: neither. Errors: those of opening it; kUnavailable
// where its schedule is unknown; those of reading --layers.
Result<std::optional<plan::RecordedRun>> run_of_plan(const Arguments& arguments, const Terminal& terminal,
                                                     const PlanGiven& given);

// Puts the run's times into the wish, and its degrees where none are given. Expects the wish's model. Errors: kUsage.
Status take_run(plan::RecordedRun run, const Arguments& arguments, plan::Wish& wish, PlanAnswer& answer);

}  // namespace stageline
