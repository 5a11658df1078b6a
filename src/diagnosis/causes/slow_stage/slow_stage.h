// Slow stage: its compute takes longer than that of the other stages, with all its work, one chunk, or one kind of it.
#pragma once

#include <vector>

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct SlowStageOwn {
  // Kinds of work that take longer: mean time of one cell of it, and of the other stages' cells.
  struct Kind {
    CellKind kind;
    double own_ns, others_ns;
  };
  std::vector<Kind> kinds = {};
  bool one_kind = false;  // only one of several kinds is slow
};

Telling tell_slow_stage(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
