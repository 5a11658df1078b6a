// Findings that are about the same loss become one: the one that says why.
//
//   copies.pageable ◀── memory.exposed    of the same copies
//   its cause       ◀── step.outlier      a long step of which the cause is known
//   rank.late       ◀── host.…            what the host of the late rank does meanwhile
//   comm.slow_link  ◀── rank.late, comm.waiting   what follows from slow transfers
#pragma once

#include <string>
#include <vector>

#include "diagnosis/profile/profile_facts.h"
#include "diagnosis/profile/rank_losses.h"
#include "model/finding.h"

namespace stageline {

// Names the largest collective or copy of comm.exposed, memory.exposed and copies.pageable, and prices the last by what
// of it is exposed.
void name_largest(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& list);

// Returns the ids of findings that others have taken in.
std::vector<std::string> absorb(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& list);

}  // namespace stageline
