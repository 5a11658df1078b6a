// Makes findings of profiler traces about input, tensor cores and memory. It is part of profile_findings. Definitions
// and thresholds are in docs/analyses/findings.md.
#pragma once

#include <vector>

#include "diagnosis/profile/profile_facts.h"
#include "model/finding.h"

namespace stageline {

// Adds input.loading, tensor_cores.unused, memory.full and data_parallel.one_process.
void add_step_findings(const Trace& trace, const ProfileFacts& facts, const ProfileSums& sums,
                       std::vector<Finding>& out);

// For a run without device work: the host's steps as parts that add up, with its longest operator in the lead.
void add_host_parts(const Trace& trace, const ProfileSums& sums, Headline& headline);

}  // namespace stageline
