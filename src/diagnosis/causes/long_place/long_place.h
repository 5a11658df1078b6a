// Long place of a step: a micro-batch takes longer in every step, on most stages or on one. Or the times of all
// micro-batches of a step follow a shape.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct LongPlaceOwn {
  Course within = {};        // the shape over the micro-batches of a step; constant: only some are long
  bool every_stage = false;  // of micro-batches that are long on most stages: they are on all of them
  double own_ns = 0;         // mean time of one long cell
};

Telling tell_long_place(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
