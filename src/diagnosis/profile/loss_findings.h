// Findings about the losses of a profile's devices, from the breakdown of its ranks. They name the cause of idle time,
// exposed communication and copies, and the saving of a step without each. Conditions: docs/analyses/findings.md.
#pragma once

#include <vector>

#include "diagnosis/profile/profile_facts.h"
#include "diagnosis/profile/rank_losses.h"
#include "model/finding.h"

namespace stageline {

// Adds host.blocked, host.allocator, host.collector, host.collective, host.busy, host.sync, input.loading,
// launch.bound, device.idle and comm.contention.
void add_loss_findings(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& out);

// True for the finding about idle time that is about this loss.
bool is_about(const Finding& finding, const RankLoss& loss);

}  // namespace stageline
