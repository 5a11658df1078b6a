// What moving whole layers would save for slow stages: the price of what-if beside that of the cause.
#pragma once

#include "base/words.h"
#include "diagnosis/causes/causes.h"
#include "diagnosis/what_if/what_if.h"

namespace stageline {

// Whether some cause is a slow stage; other causes need no model.
bool has_slow_stage(const CauseList& causes);

// Fills new_layers and layers_ns of the slow stages, with kAssumedLayers for each virtual stage as in what-if, and
// sorts the list anew. `model` is of the same trace; this sets its layers. O(operations · splits).
void price_in_layers(WhatIf& model, CauseList& causes);

// A sentence for the finding of a slow stage: what whole layers would save; "" where no split gains. `stages` is the
// number of ranks in a pipeline; with `paddle` the split is written as Paddle takes it.
Text layer_words(const Cause& cause, double step_ns, int32_t stages, bool paddle);

}  // namespace stageline
