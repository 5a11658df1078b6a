// What is said of a recorded training without a pipeline: where its steps go, and what holds them up: input, a rank
// that the others wait for, collectives that nothing hides, pauses. Conditions: docs/analyses/findings.md.
#pragma once

#include "diagnosis/explanation.h"
#include "pipeline/measure/training_time.h"

namespace stageline {

// `time` must be told.
Explanation explain_training(const TrainingTime& time);

}  // namespace stageline
