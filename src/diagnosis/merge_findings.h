// Joins findings of a profiler trace that contains a pipeline: those of its cells and those of its devices, without
// repetition or contradiction.
#pragma once

#include <vector>

#include "diagnosis/causes/findings.h"
#include "model/table.h"

namespace stageline {

// The pipeline's headline stays. `devices` loses what the pipeline says of the same ranks and steps (who is late or
// slow, long steps), and idle time and exposed communication that are mostly the pipeline's waits; the bubble's finding
// then says so. The rest is ordered by weight, those of who is slow first. Definitions: docs/analyses/findings.md.
Findings merge_findings(Findings pipeline, Findings devices);

// Whether findings_of() reads tables of this trace: for a profiler's rows it does, for pipeline cells alone it does
// not.
bool findings_read_tables(const Trace& trace);

// The findings of the trace: of its pipeline cells, or of a profiler trace from its `tables`.
Findings findings_of(const Run& run, const std::vector<Table>& tables);

}  // namespace stageline
