// Findings about transfers, from the ledger of communication: slow links of some ranks, small messages, gradients in
// one piece. Waiting for late ranks is left out of them. Conditions: docs/analyses/findings.md.
#pragma once

#include "diagnosis/profile/job_replay.h"
#include "diagnosis/profile/profile_facts.h"
#include "facts/profile_facts.h"
#include "model/finding.h"

namespace stageline {

// Adds comm.slow_link of transfers that were recorded link by link (Ascend).
void add_link_findings(const Trace& trace, const ProfileFacts& facts, const ProfileSums& sums,
                       std::vector<Finding>& out);

// Adds comm.slow_link of groups that are slower than others of their kind, comm.small, comm.bucket, comm.stalled,
// comm.slowed and comm.unaligned.
void add_transfer_findings(const LedgerOfRun& run, const ProfileFacts& facts, JobOnce& job, std::vector<Finding>& out);

// "Most of it is all_reduce of 16 ranks on 2 hosts: 38 GB/s on the bus, where 45 GB/s are expected": the transfers of
// which most is exposed. "" where no size is known.
Text rate_of_exposed(const LedgerOfRun& run);

}  // namespace stageline
