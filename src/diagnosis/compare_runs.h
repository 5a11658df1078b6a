// Compares two runs of any kind: the one answer that `stageline diff`, Python, agents and the page give.
#pragma once

#include "diagnosis/diff/diff_answer.h"
#include "facts/run.h"

namespace stageline {

// Pipelines are compared cell by cell, profiles part by part of their bars, where one of them has no pipeline. Errors:
// those of diff_runs() and diff_profiles(). Items by something else than operators are those of profiles, which are
// then compared also where both have pipelines; kUsage where a run is no profile.
Result<RunDiff> compare_runs(const Run& a, const Run& b, DiffItemsBy by = DiffItemsBy::kOperator);

}  // namespace stageline
