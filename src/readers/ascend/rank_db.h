// Reads a rank's profiler database into a Part.
#pragma once

#include "readers/ascend/find_ranks.h"
#include "readers/ascend/part_builder.h"

namespace stageline::ascend {

// The file is not changed. Memory: the columns of the part, and what joins need, at most some 100 bytes a task.
RankPart read_rank_db(const RankFiles& files, const ReadOptions& options);

}  // namespace stageline::ascend
