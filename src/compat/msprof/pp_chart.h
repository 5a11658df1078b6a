// `stageline pp-chart`: the table StepTaskInfo that MindStudio Insight draws a pipeline chart from, and the links
// between sends and receives, from the databases of an Ascend cluster's profile.
//
// Two ways to the labels. Ours reads the pipeline's cells, so that a block is labelled by what its message, its order
// and its messages to others prove, and one odd block costs one label. `as_msprof` gives what msprof-analyze 26.2's
// `cluster -m pp_chart` writes, row for row, with its faults (docs/howto/pp-chart.md), except that communication ranges
// at Level_none are joined by connectionId alone, as before 18 Aug 2026.
#pragma once

#include "base/result.h"
#include "compat/msprof/chart.h"

namespace stageline {

// Without a block in any rank nothing is written or removed. Ranks are worked on in parallel; memory is that of a few
// ranks' blocks with as_msprof, else that of all cells. A rank that cannot be read or written has an error and the
// others are done all the same. Errors: those of find_rank_databases; kUsage for ranks that are not there or an output
// that is no place for copies.
Result<PpChart> write_pp_chart(const PpChartOptions& options);

}  // namespace stageline
