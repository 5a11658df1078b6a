// What differs between two runs, for programs: what `stageline diff --json` prints and the viewer's Compare page shows.
#pragma once

#include <string>

#include "pipeline/run_diff.h"

namespace stageline {

// One object: change, headline and cause in words, what changed, both runs, the groups that text output lists ("told"),
// the tables; docs/howto/diff.md lists the keys. Without a line end.
std::string diff_json(const RunDiff& diff);

}  // namespace stageline
