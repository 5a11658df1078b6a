// A rank's profiler database as a Part.
#pragma once

#include "readers/ascend/find_ranks.h"
#include "readers/ascend/rank_part.h"

namespace stageline::ascend {

// The file is not changed. Memory: the part's columns and what joins need, some 100 bytes a task at most.
RankPart read_rank_db(const RankFiles& files, const ReadOptions& options);

}  // namespace stageline::ascend
