// What snapshots of PyTorch's allocator say: why memory ran out, and how much of the held memory nobody can use.
#pragma once

#include <vector>

#include "diagnosis/causes/findings.h"
#include "facts/run.h"

namespace stageline {

// Whether the trace is made of snapshots: its parts hold an allocator's memory and no times of work.
bool has_allocators(const Trace& trace);

// Findings "memory.oom", one for each device and reason, and "memory.fragmented". Definitions:
// docs/analyses/allocator-snapshot.md.
Findings allocator_findings(const Run& run);

}  // namespace stageline
