// Joins findings of a profiler trace that contains a pipeline: those of its cells and those of its devices, without
// repetition or contradiction.
#pragma once

#include "diagnosis/causes/findings.h"

namespace stageline {

// The pipeline's headline stays. `devices` loses the findings that the pipeline has for the same ranks and steps: late
// or slow ranks, long steps. It also loses idle time and exposed communication that are mostly waits of the pipeline;
// the bubble's finding then says so. The rest is ordered by weight, those of who is slow first. Definitions:
// docs/analyses/findings.md.
Findings merge_findings(Findings pipeline, Findings devices);

// Whether the trace has slices of a profiler.
bool is_profile(const Trace& trace);

// The findings of the trace: of its pipeline cells, of a profiler's slices, or of both.
Findings findings_of(const Run& run);

}  // namespace stageline
