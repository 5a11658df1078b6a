// Makes findings of profiler traces about steps, input, collectives, tensor cores and memory, read from the tables of
// the tb-analyses. It is part of profile_findings. Definitions and thresholds are in docs/analyses/findings.md.
#pragma once

#include <vector>

#include "diagnosis/profile/profile_facts.h"
#include "model/finding.h"
#include "model/table.h"

namespace stageline {

// Adds input.loading, tensor_cores.unused, memory.full and data_parallel.one_process. If one of these explains a
// finding that is already in `out` (device.idle), that finding mentions it, or is removed if nothing else
// remains.
void add_step_findings(const ProfileFacts& facts, const std::vector<Table>& tables, std::vector<Finding>& out);

// For a run without device work: the host's steps as parts that add up, with its longest operator in the lead.
void add_host_parts(const std::vector<Table>& tables, Headline& headline);

}  // namespace stageline
