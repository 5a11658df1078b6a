// Findings about ranks that others wait for, and about waiting.
#pragma once

#include "diagnosis/profile/profile_facts.h"
#include "model/finding.h"

namespace stageline {

// Adds rank.late and rank.slow. A rank that is late because it computes longer is reported once, as rank.slow.
void add_late_and_slow_ranks(const ProfileFacts& facts, std::vector<Finding>& out);

// Adds comm.waiting or, where one rank waits least, rank.late. Where that rank has a finding, says there how much of
// the collectives' time is waiting.
void add_waiting(const ProfileFacts& facts, std::vector<Finding>& out);

// The finding of the rank that the others wait for; nullptr where there is none.
Finding* finding_of_late_rank(const ProfileFacts& facts, std::vector<Finding>& list);

}  // namespace stageline
