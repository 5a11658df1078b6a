// Computes what can be typed against a cause: moving whole layers away from a slow stage, and more micro-batches in
// flight in front of a slow link.
#pragma once

#include "diagnosis/causes/causes.h"
#include "diagnosis/what_if/stage_bytes.h"
#include "diagnosis/what_if/what_if.h"

namespace stageline {

// Whether the work of some cause is layers that can be moved; other causes need no model.
bool has_layers_to_move(const CauseList& causes);

// Fills price.fix of causes whose work is layers, with those of `bytes` or kAssumedLayers for each virtual stage as in
// what-if, and sorts the list again. `model` is of the same trace; this sets its layers. `bytes` may be null.
// O(operations · splits).
void price_in_layers(WhatIf& model, const Trace& trace, const StageBytes* bytes, CauseList& causes);

// The same for slow links, whose price.fix gets only words.
bool has_links_to_hide(const CauseList& causes);
void price_in_flight(WhatIf& model, const StageBytes* bytes, CauseList& causes);

}  // namespace stageline
