// Findings about the links between ranks. Conditions: docs/analyses/findings.md.
#pragma once

#include <vector>

#include "diagnosis/profile/profile_facts.h"
#include "model/finding.h"

namespace stageline {

void add_link_findings(const Trace& trace, const ProfileFacts& facts, const ProfileSums& sums,
                       std::vector<Finding>& out);

}  // namespace stageline
