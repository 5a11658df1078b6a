// Computes what can be typed against a cause: moving whole layers away from a slow stage, and more micro-batches in
// flight in front of a slow link.
#pragma once

#include "diagnosis/causes/causes.h"
#include "diagnosis/what_if/stage_bytes.h"
#include "diagnosis/what_if/what_if.h"

namespace stageline {

// Returns the causes of a run. price.fix of a cause in layers is what moving whole layers saves, and the list is sorted
// by it. Without `bytes`, each virtual stage is assumed to have kAssumedLayers, as in what-if.
// O(operations · splits), without `bytes` once for a run.
CauseList causes_in_layers(const Run& run, const StageBytes* bytes = nullptr);

bool has_links_to_hide(const CauseList& causes);
// Does the same for slow links, whose price.fix gets only words. `model` is of the same trace.
void price_in_flight(WhatIf& model, const StageBytes* bytes, CauseList& causes);

}  // namespace stageline
