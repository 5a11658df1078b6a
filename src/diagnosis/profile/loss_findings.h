// Findings about the losses of a profile's devices, from the breakdown of its ranks. They name the cause of idle time,
// exposed communication and copies, and the saving of a step without each. Conditions: docs/analyses/findings.md.
#pragma once

#include <vector>

#include "diagnosis/profile/profile_facts.h"
#include "diagnosis/profile/rank_losses.h"
#include "model/finding.h"

namespace stageline {

// Replaces the sums by those of the accounts (times by rank, idle time by owner, time recorded outside), so that
// bar, headline and findings are about the same window.
void take_account(const ProfileAccount& account, ProfileFacts& facts);

// Adds host.blocked, host.allocator, host.collector, host.collective, host.busy, host.sync, input.loading,
// launch.bound, device.idle and comm.contention.
void add_loss_findings(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& out);

// Adds details to findings: the largest contributor to comm.exposed and memory.exposed, the owner of the copies in
// copies.pageable, and the host activity in rank.late. A finding about that host is merged into rank.late. Returns the
// ids of findings that others now cover.
std::vector<std::string> name_culprits(const ProfileFacts& facts, const ProfileAccount& account,
                                       std::vector<Finding>& out);

// Adds to every finding what it costs as time of a step.
void speak_in_time(const ProfileFacts& facts, std::vector<Finding>& list);

// Sets the sentence that closes the breakdown. It lists the lines of the bar of 1 % or more that none of the findings
// with ids in `reported` covers.
void close_account(const std::vector<Finding>& list, const std::vector<std::string>& reported, Headline& headline);

// Adds idle time to the bar, one line for each owner.
void add_idle_parts(const ProfileAccount& account, Headline& headline);

}  // namespace stageline
