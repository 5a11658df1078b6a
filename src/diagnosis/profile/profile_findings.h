// Findings of profiler traces: the headline, the span as a bar, and what to do.
#pragma once

#include "diagnosis/causes/findings.h"
#include "diagnosis/profile/profile_facts.h"
#include "facts/profile_facts.h"

namespace stageline {

// Returns the findings. `account` is of the ranks with device work; without it, idle time has causes and no owners.
// Definitions and thresholds are in docs/analyses/findings.md.
// `ledger`: of ranks that communicate; without it, nothing is said of transfers.
Findings profile_findings(const Trace& trace, const ProfileSums& sums, const ProfileAccount& account = {},
                          const LedgerOfRun* ledger = nullptr);
// Returns the same of a run, with its account and its ledger.
Findings profile_findings(const Run& run);

// The facts and the headline with its bar that profile_findings() makes, without findings.
struct MeasuredProfile {
  ProfileFacts facts;
  Headline headline;
};
MeasuredProfile measured_profile(const Run& run);

// The losses that profile_findings() lists, and those before some of them became one finding with others.
struct ProfileLosses {
  ProfileFacts facts;
  std::vector<Finding> list, before;
};
ProfileLosses profile_losses(const Run& run);

// Findings from flight-recorder dumps: which rank hangs, where and since when, and which calls mismatch.
// Findings "collective.missing", "collective.mismatch", "collective.stuck" and "collective.cycle", the first one for
// each group and cause; none where all calls fit and have completed. Definitions: docs/analyses/flight-recorder.md.
Findings flight_findings(const Run& run);

// Findings from snapshots of PyTorch's allocator: the reason why memory ran out, and the held memory that is unusable.

// Returns true when the trace is made of snapshots: its parts hold an allocator's memory and no times of work.
bool has_allocators(const Trace& trace);

// Returns the findings "memory.oom", one for each device and reason, and "memory.fragmented". Definitions:
// docs/analyses/allocator-snapshot.md.
Findings allocator_findings(const Run& run);

}  // namespace stageline
