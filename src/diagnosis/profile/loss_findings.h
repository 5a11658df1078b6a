// Findings of a profile about what its devices lose, from the accounts of its ranks: who owns their idle time, exposed
// communication and copies, and what a step wins without each. Conditions: docs/analyses/findings.md.
#pragma once

#include <vector>

#include "diagnosis/profile/profile_facts.h"
#include "diagnosis/profile/rank_losses.h"
#include "model/finding.h"

namespace stageline {

// Puts the accounts' sums in the place of the tables', so that bar, headline and findings are of one window: times by
// rank, idle time by owner, what was recorded outside.
void take_account(const ProfileAccount& account, ProfileFacts& facts);

// Adds host.blocked, host.allocator, host.collector, host.collective, host.busy, host.sync, input.loading,
// launch.bound, device.idle and comm.contention.
void add_loss_findings(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& out);

// Says of comm.exposed and memory.exposed what they are mostly about, of copies.pageable whose copies they are, and of
// rank.late what its host does meanwhile; the finding about that host is then said with it, and taken out.
void name_culprits(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& out);

// Says what every finding costs as time of a step.
void speak_in_time(const ProfileFacts& facts, std::vector<Finding>& list);

// The sentence that closes the account: which lines of the bar take 1 % or more and are told by no finding of `list`.
void close_account(const std::vector<Finding>& list, Headline& headline);

// Idle time as lines of the bar.
void add_idle_parts(const ProfileAccount& account, Headline& headline);

}  // namespace stageline
