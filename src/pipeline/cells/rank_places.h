// Every rank's place in the parallel strategy: tensor, context, expert, data and pipeline index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {

struct RankPlace {  // kUnknown where nothing says it
  int32_t tp = kUnknown, cp = kUnknown, ep = kUnknown, dp = kUnknown, pp = kUnknown;
};

struct RankMap {
  int32_t tp = 0, cp = 0, ep = 0, dp = 0, pp = 0;  // sizes; 0: not known
  int64_t world = 0;                               // ranks of the job; 0: not known
  std::string order;              // "tp-cp-ep-dp-pp": the fastest first; "" when no order makes these places
  std::string how;                // for people: "parallel_group_info and distributed_args"
  std::vector<RankPlace> places;  // by part
  std::vector<int32_t> missing;   // ranks that the job has and the input has not, ascending; at most 4096
};

// By the groups that hold a rank (parallel_group_info, distributedInfo), else by sizes (distributed_args, options) in
// Megatron's order. Options fill what the source does not say. O(ranks · groups).
RankMap rank_map(const Trace& trace, const RankLayoutOptions& options);

// Trace::context_parallel of placed parts: 1 unless sizes that fit every rank and the stages found make as many of the
// pipelines side by side. Options that contradict the source change nothing. O(ranks · groups).
int32_t context_parallel_of(const Trace& trace, const RankLayoutOptions& options);

// Gives every part stage and replica (Part::stage, dp) and the trace its pipeline_stages, by options that nothing
// contradicts, groups, distributed_args or messages, and says by which ("cells.stages", "cells.layout_contradicted",
// "cells.ranks_missing"). False where nothing tells.
bool place_ranks(Trace& trace, const RankLayoutOptions& options);

}  // namespace stageline
