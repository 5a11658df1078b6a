// Separates the work of a step from work between two steps.
#pragma once

#include "model/kind.h"

namespace stageline {

// True for compute, collectives and the optimizer. Messages do not count, as they may be posted while the previous step
// still runs. Rows of kind "other" (loading data, a checkpoint) do not either, as they may lie between steps.
constexpr bool is_step_work(CellKind kind) {
  return is_compute(kind) || kind == CellKind::kCollective || kind == CellKind::kOptimizer;
}

}  // namespace stageline
