// Computes what moving whole layers would save: the fix of a slow stage that can be typed.
#pragma once

#include "diagnosis/causes/causes.h"
#include "diagnosis/what_if/what_if.h"

namespace stageline {

// Whether the work of some cause is layers that can be moved; other causes need no model.
bool has_layers_to_move(const CauseList& causes);

// Fills price.fix of causes whose work is layers, with kAssumedLayers for each virtual stage as in what-if, and sorts
// the list again. `model` is of the same trace; this sets its layers. O(operations · splits).
void price_in_layers(WhatIf& model, const Trace& trace, CauseList& causes);

}  // namespace stageline
