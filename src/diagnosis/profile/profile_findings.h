// Findings of profiler traces: the headline, the span as a bar, and what to do, read from the analyses' tables.
#pragma once

#include <vector>

#include "diagnosis/causes/findings.h"
#include "diagnosis/profile/rank_losses.h"
#include "model/table.h"
#include "model/trace.h"

namespace stageline {

// Returns the findings. `tables` are those of all_tables in the default mode; findings that need a missing table are
// skipped. `account` is of the ranks with device work; without it, idle time has the tables' causes and no owners.
// Definitions and thresholds are in docs/analyses/findings.md.
Findings profile_findings(const Trace& trace, const std::vector<Table>& tables, const ProfileAccount& account = {});

}  // namespace stageline
