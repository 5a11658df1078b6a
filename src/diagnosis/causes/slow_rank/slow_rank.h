// Slow rank: its compute takes longer than that of the same stage's ranks in other replicas.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

struct SlowRankOwn {
  bool of_peers_too = true;  // ranks of its stage and replica are not distinguished from it
};

Telling tell_slow_rank(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
