// Blocking sends: work starts only when its rank's own send has ended.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct BlockingSendsOwn {
  int64_t ranks = 0;
};

Telling tell_blocking_sends(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
