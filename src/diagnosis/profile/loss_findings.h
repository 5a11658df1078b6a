// Findings of a profile about what its devices lose, from the accounts of its ranks: who is to blame for idle time,
// exposed communication and copies, and what a step would gain without each. Conditions: docs/analyses/findings.md.
#pragma once

#include <vector>

#include "diagnosis/profile/profile_facts.h"
#include "diagnosis/profile/rank_losses.h"
#include "model/finding.h"

namespace stageline {

// Replaces the tables' sums by the accounts' sums (times by rank, idle time by owner, time recorded outside), so that
// bar, headline and findings are about the same window.
void take_account(const ProfileAccount& account, ProfileFacts& facts);

// Adds host.blocked, host.allocator, host.collector, host.collective, host.busy, host.sync, input.loading,
// launch.bound, device.idle and comm.contention.
void add_loss_findings(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& out);

// Adds to comm.exposed and memory.exposed what they are mostly about, to copies.pageable whose copies they are, and to
// rank.late what its host does meanwhile; a finding about that host is then merged into rank.late. Returns the ids of
// findings that are told by others from then on.
std::vector<std::string> name_culprits(const ProfileFacts& facts, const ProfileAccount& account,
                                       std::vector<Finding>& out);

// Adds to every finding what it costs as time of a step.
void speak_in_time(const ProfileFacts& facts, std::vector<Finding>& list);

// Sets the sentence that closes the account: which lines of the bar take 1 % or more and are told by none of the
// findings whose ids are in `told`.
void close_account(const std::vector<Finding>& list, const std::vector<std::string>& reported, Headline& headline);

// Adds idle time to the bar, one line for each owner.
void add_idle_parts(const ProfileAccount& account, Headline& headline);

}  // namespace stageline
