// All ranks are slower from a step on, until a step, more (or less) with every step, in every n-th step, or in some
// steps.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

Telling tell_all_slow(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
