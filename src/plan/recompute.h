// The work that ranks compute again so that they fit into their memory.
#pragma once

#include "plan/pipeline.h"

namespace stageline::plan {

// Lets the parts of a rank compute again what takes least time and fits; false where nothing does.
// O(log layers · moments).
bool recompute_rank(const PlanProblem& problem, const LayerSums& sums, int32_t rank, std::span<ChunkPart> parts);
// Does the same for all ranks, in the way that the framework allows.
bool recompute_all(const PlanProblem& problem, const LayerSums& sums, Plan& plan);

}  // namespace stageline::plan
