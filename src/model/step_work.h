// What a step itself does, apart from what stands between two steps.
#pragma once

#include "model/kind.h"

namespace stageline {

// Compute, collectives and the optimizer. Messages may be posted while the step before still runs, and rows of kind
// "other" (data, a checkpoint) may stand between two steps.
constexpr bool is_step_work(CellKind kind) {
  return is_compute(kind) || kind == CellKind::kCollective || kind == CellKind::kOptimizer;
}

}  // namespace stageline
