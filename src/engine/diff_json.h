// The difference between two runs as JSON.
#pragma once

#include "diagnosis/diff/diff_answer.h"

namespace stageline {

// Returns the difference between two runs as one JSON object without a line end: `stageline diff --json` prints it, and
// the viewer's Compare page shows it. It has change_ns with error_ns, headline and cause in words,
// "differences" of schedule and sizes, both "runs", the groups that the text output lists ("changes"), and the tables.
// Sentences are in both languages.
std::string diff_json(const RunDiff& diff);

}  // namespace stageline
