// Late sends: a result was ready, its rank had no recorded work, and then sent it. The cause is the host, not the link.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct LateSendsOwn {
  std::vector<uint32_t> at = {};  // where they are at the same places of every step: one cell for each place
  double usual_ns = 0;
};

Telling tell_late_sends(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
