// The ranks that others wait for in collectives, and the waiting in exposed communication. Findings, bar and account
// ask here. Conditions: docs/analyses/findings.md.
#pragma once

#include "diagnosis/profile/job_replay.h"
#include "diagnosis/profile/profile_facts.h"
#include "facts/profile_facts.h"
#include "model/finding.h"

namespace stageline {

// Sets `late` and `slow_rank` of the facts, and the ranks' `comm_wait_ns` for it. `ledger` may be null.
void see_late_rank(const LedgerOfRun* ledger, ProfileFacts& facts);

// Sets `slow` of the rank that computes longer, from its kernels and its device's clock.
void see_why_slow(const Trace& trace, JobOnce& job, ProfileFacts& facts);

// Where no rank is late: sets `waits`, and the ranks' `comm_wait_ns`, if collectives mostly wait all the same.
void see_waits(const Trace& trace, const ProfileSums& sums, ProfileFacts& facts);

// Price the rank that is late, other than by computing, and min_rank of `waits`, by a replay of all ranks in which none
// waits for it. A rank for which the others wait little is late only if that saves enough. The first comes before
// see_waits.
void price_late_rank(JobOnce& job, ProfileFacts& facts);
void price_waits(JobOnce& job, ProfileFacts& facts);

// Adds rank.late and rank.slow. A rank that is late because it computes longer is reported once, as rank.slow.
void add_late_and_slow_ranks(const ProfileFacts& facts, std::vector<Finding>& out);

// Adds comm.waiting, or says in the finding of the late rank how much of the collectives' time is waiting.
void add_waiting(const ProfileFacts& facts, std::vector<Finding>& out);

// The finding of the rank that the others wait for; nullptr where there is none.
Finding* finding_of_late_rank(const ProfileFacts& facts, std::vector<Finding>& list);

}  // namespace stageline
