// Time between steps: an unexplained gap, or a phase that has a name, before every step or before some.
#pragma once

#include <vector>

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct BetweenStepsOwn {
  std::vector<int32_t> at_steps = {};  // the steps after the gaps
  bool may_be_optimizer = false;       // no optimizer was recorded, so it may be part of that time
};

Telling tell_between_steps(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
