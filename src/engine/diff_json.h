// What differs between two runs, for programs: what `stageline diff --json` prints and the viewer's Compare page shows.
#pragma once

#include <string>

#include "diagnosis/diff/run_diff.h"

namespace stageline {

// One object: change_ns with error_ns, headline and cause in words, "changes" of schedule and sizes, both "runs", the
// groups that text output lists ("told"), the tables; sentences in both languages. Without a line end.
std::string diff_json(const RunDiff& diff);

}  // namespace stageline
