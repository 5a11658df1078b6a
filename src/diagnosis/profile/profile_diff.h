// Answers about profiles besides explain's: two of them compared, and what each would save without its losses.
#pragma once

#include "diagnosis/diff/diff_answer.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "facts/run.h"

namespace stageline {

// Compares two profiles: by how much the mean step changed, part by part of the bars that explain draws of both, and
// what stands behind each part. Definitions: docs/reference/diff.md.
// Errors: those of profile_parts(), with "run A" or "run B" in front. O(slices + items · steps).
Result<RunDiff> diff_profiles(const Run& a, const Run& b, DiffItemsBy by);

// The time that a profile would save without each loss alone, and without all of them. Definitions:
// docs/analyses/what-if.md. The losses that explain lists, with its own numbers; in front of them all together
// ("combined"), by one replay of every rank without all of them. Errors: kUnavailable where launches are not linked to
// device work, so that nothing can be replayed. O(slices) beyond the facts of explain.
Result<FixList> profile_fixes(const Run& run);

}  // namespace stageline
