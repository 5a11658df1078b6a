// A rank's profiler database as a Part.
#pragma once

#include <optional>

#include "base/result.h"
#include "readers/ascend/find_ranks.h"
#include "readers/ascend/part_builder.h"

namespace stageline::ascend {

struct RankPart {
  std::optional<Error> error;
  Part part;  // with ids of `names`
  FileNames names;
  Diagnostics notes;
};

// The file is not changed. Memory: the part's columns and what joins need, some 100 bytes a task at most.
RankPart read_rank_db(const RankFiles& files, const ReadOptions& options);

}  // namespace stageline::ascend
