// What moving whole layers would bring to stages that are slow: what-if's price beside the cause's.
#pragma once

#include "base/words.h"
#include "diagnosis/causes/causes.h"
#include "diagnosis/what_if/what_if.h"

namespace stageline {

// Whether some cause is a slow stage: others need no model.
bool has_slow_stage(const CauseList& causes);

// Fills new_layers and layers_ns of the slow stages, with kAssumedLayers a virtual stage as what-if assumes them, and
// sorts the list anew. `model` of the same trace; its layers are set. O(operations · splits).
void price_in_layers(WhatIf& model, CauseList& causes);

// What whole layers would bring, for the finding of a slow stage: a sentence in each language; "" where none gains.
// `stages`: ranks of a pipeline. `paddle`: the run is Paddle's, and the split is written as Paddle takes it.
Text layer_words(const Cause& cause, double step_ns, int32_t stages, bool paddle);

}  // namespace stageline
