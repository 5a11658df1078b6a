// Slow ranks together: those of a replica, of a machine, or several with the same excess. slow_rank/suspect.cc finds
// them.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct SlowRanksOwn {
  // No two replicas are alike, so none of them is the usual one: the replica that the others are compared with.
  int32_t fastest = kUnknown;
  bool graded() const { return fastest != kUnknown; }
};

// Suspects replicas that all differ: no half of them are alike, so none is the usual one, and stages agree on which are
// slower. All except the fastest are one cause, priced against the fastest; they are divided out of scene.times.
void suspect_graded_replicas(CauseScene& scene, std::vector<Suspect>& out);

Telling tell_slow_ranks(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
