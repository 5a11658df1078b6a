// StepTaskInfo and links as msprof-analyze gives them, faults included.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sqlite_db.h"
#include "compat/msprof/device_ranges.h"
#include "compat/msprof/rank_tables.h"

namespace stageline {

// What the first rank's META_DATA says, as msprof-analyze takes it.
struct MsprofPlan {
  bool dualpipev = false;
  bool lost = false;           // distributed_args or microbatch_num are no use: nothing is labelled nor written
  int64_t micro_batches = -1;  // −1: not said, every name stays empty
  int64_t stages = 1, ranks_per_stage = 1;  // tensor-parallel × data-parallel size; context parallelism is not seen
  std::string remark;
};

// `sizes`: pp, tp and dp by hand, used when all are above 0.
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
