// Makes our own tables of every rank: blocks from the pipeline's cells, and links from who sends to whom.
#pragma once

#include <vector>

#include "compat/msprof/chart.h"
#include "compat/msprof/rank_databases.h"
#include "compat/msprof/rank_tables.h"

namespace stageline {

using CellRanks = std::vector<RankTables>;

// Fills the ranks of `chart`, except for what was written. A rank that cannot be read gets an error, and the others are
// labelled nevertheless. Where a rank has no cells, its forward and backward ranges get the names F and B and count as
// unlabelled. `finding` has the notes from looking for the databases, since opening the profile notes the same again.
CellRanks label_ranks(const PpChartOptions& options, const std::vector<RankDatabase>& ranks, const Diagnostics& finding,
                      std::vector<Diagnostics>& notes, PpChart& chart);

}  // namespace stageline
