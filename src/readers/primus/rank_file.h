// Reads one pp_rank_N.json into rows.
#pragma once

#include "readers/common/ops.h"

namespace stageline {
class Progress;
}

namespace stageline::primus {

// Holds the content of config.json; 0 for missing values.
struct Config {
  int64_t world_size = 0, pp_size = 0, vp_size = 0, dp_size = 0, tp_size = 0, micro_batches = 0;
};
Config read_config(const std::string& path);

struct RankOps {
  std::vector<Op> ops;
  std::map<int32_t, int64_t> total_ns;  // for each iteration the time from the schedule's begin to its end
  Diagnostics diagnostics;
  std::vector<int32_t> lossy_steps;  // of cells that were left out
  int64_t chunks_assigned = 0;       // cells whose chunk and micro-batch were found by their position
};

struct RankFile {
  std::string path;
  int32_t pp_rank = 0;
  uint32_t file = 0;
  int32_t pp_size = 1, vp_size = 1;
};
// Errors: as read_all, and kBadInput when the file is not a JSON object.
Result<RankOps> read_rank(const RankFile& file, Progress* progress);

}  // namespace stageline::primus
