// The time that a profile would save without each loss alone, and without all of them. Definitions:
// docs/analyses/what-if.md.
#pragma once

#include "base/result.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "facts/run.h"

namespace stageline {

// The losses that explain lists, with its own numbers; in front of them all together ("combined"), by one replay of
// every rank without all of them. Errors: kUnavailable where launches are not linked to device work, so that nothing
// can be replayed. O(slices) beyond the facts of explain.
Result<FixList> profile_fixes(const Run& run);

}  // namespace stageline
