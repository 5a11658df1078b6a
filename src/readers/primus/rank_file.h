// One pp_rank_N.json becomes rows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/ops.h"

namespace stageline {
class Progress;
}

namespace stageline::primus {

// What config.json says; 0 where it says nothing.
struct Config {
  int64_t world_size = 0, pp_size = 0, vp_size = 0, dp_size = 0, tp_size = 0, micro_batches = 0;
};
Config read_config(const std::string& path);

struct RankOps {
  std::vector<Op> ops;
  std::map<int32_t, int64_t> total_ns;  // per iteration: from schedule entry to its end
  Diagnostics diagnostics;
  int64_t chunks_assigned = 0;  // cells whose chunk and micro-batch follow from their position
};

struct RankFile {
  std::string path;
  int32_t pp_rank = 0;
  uint32_t file = 0;
  int32_t pp_size = 1, vp_size = 1;
};
// Errors: as read_all, and kBadInput when the file is no JSON object.
Result<RankOps> read_rank(const RankFile& file, Progress* progress);

// Interleaved order of Megatron: the k-th forward (backward) of a rank in groups of pp micro-batches,
// chunk by chunk. `count`: forwards of the iteration, all chunks together.
struct Position {
  int32_t chunk, micro_batch;
};
Position interleaved_position(int64_t k, int64_t count, int32_t pp_size, int32_t vp_size, bool forward);

}  // namespace stageline::primus
