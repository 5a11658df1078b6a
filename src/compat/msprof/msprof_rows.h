// Makes StepTaskInfo and links as msprof-analyze does, faults included.
#pragma once

#include "compat/msprof/rank_tables.h"

namespace stageline {

// The facts that msprof-analyze takes from the first rank's META_DATA.
struct MsprofPlan {
  bool dualpipev = false;
  bool lost = false;           // distributed_args or microbatch_num are unusable, so nothing is labelled or written
  int64_t micro_batches = -1;  // −1 when not given, and then every name is empty
  int64_t stages = 1, ranks_per_stage = 1;  // tensor-parallel × data-parallel size; context parallelism is ignored
  std::string remark;
};

// pp, tp and dp given by hand; used when all are above 0.
struct MsprofSizes {
  int32_t pp = 0, tp = 0, dp = 0;
};
MsprofPlan msprof_plan(const SqliteDb& first, bool msmonitor, const MsprofSizes& sizes);

struct MsprofRank {
  RankTables tables;
  int64_t unlabelled = 0;
  std::vector<std::string> remarks;
};
Result<MsprofRank> msprof_rank(const SqliteDb& db, int32_t rank, const MsprofPlan& plan, const HostWindow& window);

}  // namespace stageline
