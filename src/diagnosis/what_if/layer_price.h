// Computes what can be typed against a cause: moving whole layers away from a slow stage, and more micro-batches in
// flight in front of a slow link.
#pragma once

#include "diagnosis/causes/causes.h"
#include "diagnosis/what_if/stage_bytes.h"
#include "diagnosis/what_if/what_if.h"

namespace stageline {

// Returns the causes of a run. Those whose work is layers that can be moved have their price.fix, with the layers of
// `bytes`, or kAssumedLayers for each virtual stage as in what-if where it is null; the list is sorted by it.
// O(operations · splits), without `bytes` once for a run.
CauseList causes_in_layers(const Run& run, const StageBytes* bytes = nullptr);

// The same for slow links, whose price.fix gets only words. `model` is of the same trace.
bool has_links_to_hide(const CauseList& causes);
void price_in_flight(WhatIf& model, const StageBytes* bytes, CauseList& causes);

}  // namespace stageline
