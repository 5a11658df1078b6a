// Checks that what the user named is one run. Two runs read as one give numbers that neither of them has.
#pragma once

#include "pipeline/cells/rank_layout.h"
#include "readers/reader.h"

namespace stageline {

// Compares the folders that were named or, if a single one was, the folders in it. Errors (kBadInput, with what to
// type): nothing of a named folder was read; two folders are of the same ranks, were both written by stageline simulate
// or hold work of different schedules, that is with other chunks, other kinds of backward, or whole pipelines of other
// depths (`placed`: the ranks of all together have their stages).
Status check_one_run(const Source& source, const Trace& trace, bool placed);

// Error (kBadInput): two roots hold replicas of several ranks that do not overlap, and the time between them is longer
// than either. The replicas of a run compute the same steps together, so these are two runs, or clocks that nothing
// connects. In a folder that is named as a whole they are taken for one run (check_one_clock). O(cells).
Status check_one_time(const Source& source, const Trace& trace);

}  // namespace stageline
