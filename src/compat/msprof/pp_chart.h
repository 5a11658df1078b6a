// `stageline pp-chart`: makes the table StepTaskInfo, from which MindStudio Insight draws a pipeline chart, and the
// links between sends and receives, from the databases of an Ascend cluster's profile.
//
// There are two ways to label blocks. Stageline's uses the pipeline's cells, so a block's label follows from its
// message, its order and its messages to other ranks, and one odd block costs only one label. `as_msprof` repeats the
// rows of msprof-analyze 26.2's `cluster -m pp_chart`, including its bugs (docs/reference/pp-chart.md). One difference
// remains: communication ranges of Level_none are joined by connectionId alone, as before 18 Aug 2026.
#pragma once

#include "base/result.h"
#include "compat/msprof/chart.h"

namespace stageline {

// When no rank has a block, nothing is written or removed. Ranks are processed in parallel; memory is that of the
// blocks of a few ranks with as_msprof, and that of all cells otherwise. A rank that cannot be read or written gets an
// error, and the others are done nevertheless. Errors: those of find_rank_databases; kUsage for ranks that do not
// exist, or for an output folder that cannot take copies.
Result<PpChart> write_pp_chart(const PpChartOptions& options);

}  // namespace stageline
