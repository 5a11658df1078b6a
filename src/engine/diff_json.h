// The difference between two runs, for programs: `stageline diff --json` prints it, and the viewer's Compare page shows
// it.
#pragma once

#include <string>

#include "diagnosis/diff/run_diff.h"

namespace stageline {

// Returns one JSON object without a line end. It has change_ns with error_ns, headline and cause in words,
// "differences" of schedule and sizes, both "runs", the groups that the text output lists ("changes"), and the tables.
// Sentences are in both languages.
std::string diff_json(const RunDiff& diff);

}  // namespace stageline
