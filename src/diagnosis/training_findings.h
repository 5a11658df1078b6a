// Findings for recorded training without a pipeline. They explain where step time goes: waiting for input, a straggler
// rank, exposed collectives, or pauses. Conditions: docs/analyses/findings.md.
#pragma once

#include "diagnosis/explanation.h"
#include "pipeline/measure/training_time.h"

namespace stageline {

// Expects time.reported.
Explanation explain_training(const TrainingTime& time);

}  // namespace stageline
