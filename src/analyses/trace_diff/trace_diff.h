// Compares two runs operator by operator. Definitions: docs/analyses/trace-diff.md.
#pragma once

#include "analyses/analysis.h"
#include "profile/trace_diff_options.h"

namespace stageline {

std::vector<ColumnSpec> compare_traces_columns();
std::vector<ColumnSpec> ops_diff_columns();

// Compares own time and whole time by cleaned name and category. Steps are matched by position.
Result<AnalysisResult> exact_trace_diff(const AnalysisInput& input, const DiffOptions& options);

}  // namespace stageline
