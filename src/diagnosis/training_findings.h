// What is said of a recorded training without a pipeline: where its steps go and what holds them up, which may be
// input, a rank that others wait for, collectives that nothing hides, or pauses. Conditions: docs/analyses/findings.md.
#pragma once

#include "diagnosis/explanation.h"
#include "pipeline/measure/training_time.h"

namespace stageline {

// Expects time.told.
Explanation explain_training(const TrainingTime& time);

}  // namespace stageline
