// Findings of a profiler trace that holds a pipeline: of its cells and of its devices, with nothing said twice and
// nothing that contradicts.
#pragma once

#include <vector>

#include "diagnosis/causes/findings.h"
#include "model/table.h"

namespace stageline {

// The pipeline's headline stands. Left out of `devices`: what the pipeline says of the same ranks and steps (who is
// late or slow, long steps), and idle time and exposed communication that are mostly the pipeline's waiting; its
// finding says so then. The rest is ordered by weight, who is slow first. Definitions: docs/analyses/findings.md.
Findings merge_findings(Findings pipeline, Findings devices);

// Whether findings_of() reads tables of this trace: those of a profiler's rows. Of pipeline cells alone it does not.
bool findings_read_tables(const Trace& trace);

// What is worth saying about the trace: of pipeline cells, or of a profiler trace from its `tables`.
Findings findings_of(const Run& run, const std::vector<Table>& tables);

}  // namespace stageline
