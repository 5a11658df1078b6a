// Slow link: messages from one stage to another take longer than on the other links, always or in some steps.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct SlowLinkOwn {
  double own_ns = 0, others_ns = 0;  // mean time of its messages and of those of other links; others 0: unknown
  bool unrecorded = false;           // its messages were not recorded: work that starts late shows them
};

Telling tell_slow_link(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
