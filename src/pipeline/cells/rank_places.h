// Finds every rank's place in the parallel strategy: its tensor, context, expert, data and pipeline index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {

struct RankPlace {  // kUnknown where nothing gives the index
  int32_t tp = kUnknown, cp = kUnknown, ep = kUnknown, dp = kUnknown, pp = kUnknown;
};

struct RankMap {
  int32_t tp = 0, cp = 0, ep = 0, dp = 0, pp = 0;  // the sizes; 0 when not known
  int64_t world = 0;                               // number of ranks of the job; 0 when not known
  std::string order;  // "tp-cp-ep-dp-pp", the fastest first; "" when no order of dimensions gives these places
  Text how;           // how it was found, for people: "parallel_group_info and distributed_args"
  std::vector<RankPlace> places;  // for each part
  std::vector<int32_t> missing;   // ranks of the job that the input does not have, ascending; at most 4096 of them
};

// Uses the groups that hold a rank (parallel_group_info, distributedInfo), else sizes (distributed_args, options) in
// Megatron's order. Options fill in what the source does not say. O(ranks · groups).
RankMap rank_map(const Trace& trace, const RankLayoutOptions& options);

// Returns Trace::context_parallel for parts that have their places: how many of the pipelines side by side work on
// parts of the same micro-batches. It is 1 unless there are sizes that fit every rank and the stages found. Options
// that contradict the source change nothing. O(ranks · groups).
int32_t context_parallel_of(const Trace& trace, const RankLayoutOptions& options);

// Gives every part its stage and replica (Part::stage, dp) and the trace its pipeline_stages. It uses options that
// nothing contradicts, then groups, distributed_args or messages, and its diagnostics say which ("cells.stages",
// "cells.layout_contradicted", "cells.ranks_missing"). Returns false where nothing gives the places.
bool place_ranks(Trace& trace, const RankLayoutOptions& options);

}  // namespace stageline
