// Compares two profiles: by how much the mean step changed, part by part of the bars that explain draws of both, and
// what stands behind each part. Definitions: docs/reference/diff.md.
#pragma once

#include "base/result.h"
#include "diagnosis/diff/diff_answer.h"
#include "facts/run.h"

namespace stageline {

// Errors: those of profile_parts(), with "run A" or "run B" in front. O(slices + items · steps).
Result<RunDiff> diff_profiles(const Run& a, const Run& b);

}  // namespace stageline
