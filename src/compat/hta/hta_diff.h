// Compares two runs operator by operator, as HTA does. Definitions: docs/analyses/trace-diff.md.
#pragma once

#include <vector>

#include "base/result.h"
#include "model/table.h"
#include "model/trace.h"
#include "profile/trace_diff_options.h"

namespace stageline {

// HTA's TraceDiff: counts and sums of durations by name, parents and children alike. Returns two tables, compare-traces
// and ops-diff. Errors: kBadInput with HTA's reasons.
Result<std::vector<Table>> hta_trace_diff(const Trace& control, const Trace& test, const DiffOptions& options);

}  // namespace stageline
