// The ranks that others wait for in collectives, and the waiting in exposed communication. Findings, bar and account
// ask here. Conditions: docs/analyses/findings.md.
#pragma once

#include "diagnosis/profile/profile_facts.h"
#include "facts/profile_facts.h"

namespace stageline {

// The part of a step from which on lateness counts where a replay can say what it costs.
inline constexpr double kLateCost = 0.02;
// A reason explains lateness if it is at least half of what the others wait.
inline constexpr double kExplains = 0.5;

// Why a rank is late: its device waits for its host, or starts late what was launched long before, or it computes
// longer.
enum class Why : uint8_t { kUnknown, kHost, kStream, kComputing };

// The reason that explains a good part of what each of the others waits for the rank.
Why why_late(const ProfileFacts& facts, const RankFacts& late, double waiting_ns);

// Sets `late` and `slow_rank` of the facts, and the ranks' `comm_wait_ns` for it. `ledger` may be null.
void find_late_rank(const LedgerOfRun* ledger, ProfileFacts& facts);

// Sets `waits` if collectives mostly wait or all wait for one rank, and the ranks' `comm_wait_ns` where no rank is
// late.
void find_waits(const Trace& trace, const ProfileSums& sums, ProfileFacts& facts);

// Returns true where a rank waits less than the others by `min_ns` or more, and by more than these differ, alone or
// with a minority of ranks. `waits_ns` holds each rank's waiting. True where fewer than three ranks, or not this one,
// wait.
bool comes_apart(const std::map<int32_t, double>& waits_ns, int32_t rank, double min_ns);

}  // namespace stageline
