// Slow ranks together: those of a replica, of a machine, or several with the same excess. suspect.cc finds replicas
// that all differ, slow_rank/suspect.cc the others.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct SlowRanksOwn {
  // No two replicas are alike, so none of them is the usual one: the replica that the others are compared with.
  int32_t fastest = kUnknown;
  bool graded() const { return fastest != kUnknown; }
};

Telling tell_slow_ranks(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
