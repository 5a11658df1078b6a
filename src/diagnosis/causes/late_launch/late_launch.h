// Late launches: all cells of a rank start late, or all of one direction, though nothing holds them up.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct LateLaunchOwn {
  CellKind direction = CellKind::kOther;  // the only late direction
  double others_ns = 0;                   // how late the other ranks are; 0: almost never late
};

Telling tell_late_launch(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
