// Unsplit backwards: whole backwards where the schedule splits weight gradients off. order/known.cc finds them.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

Telling tell_unsplit(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
