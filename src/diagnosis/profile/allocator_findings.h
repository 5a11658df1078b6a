// Findings from snapshots of PyTorch's allocator: the reason why memory ran out, and the held memory that is unusable.
#pragma once

#include "diagnosis/causes/findings.h"
#include "facts/run.h"

namespace stageline {

// Whether the trace is made of snapshots: its parts hold an allocator's memory and no times of work.
bool has_allocators(const Trace& trace);

// Returns the findings "memory.oom", one for each device and reason, and "memory.fragmented". Definitions:
// docs/analyses/allocator-snapshot.md.
Findings allocator_findings(const Run& run);

}  // namespace stageline
