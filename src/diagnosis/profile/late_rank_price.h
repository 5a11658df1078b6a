// The cost of late and slow ranks: replays of all ranks without the lateness or the slowness.
#pragma once

#include "diagnosis/profile/job_replay.h"
#include "diagnosis/profile/profile_facts.h"

namespace stageline {

// Sets `slow` of the rank that computes longer, from its kernels and its device's clock, and what its slowness costs.
void price_slow_rank(const Trace& trace, JobOnce& job, ProfileFacts& facts);

// Price the rank that is late, other than by computing, and min_rank of `waits`, by a replay of all ranks in which none
// waits for it. A rank for which the others wait little is late only if that saves enough. The first comes before
// find_waits().
void price_late_rank(JobOnce& job, ProfileFacts& facts);
void price_waits(JobOnce& job, ProfileFacts& facts);

}  // namespace stageline
