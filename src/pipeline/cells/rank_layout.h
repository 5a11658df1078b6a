// Which rank of a job is which pipeline stage, by what traces say about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/trace.h"
#include "pipeline/cells/layout_options.h"

namespace stageline {

// Errors: kUsage for an order with unknown, repeated or missing dimensions.
Status check_rank_order(std::string_view order);

// By the options: rank number → coordinates in the order given (default tp-cp-ep-dp-pp, Megatron's), ep 1. Every
// context-parallel index is a replica of its own: RankLayout::dp counts both.
RankLayout layout_from_options(const Trace& trace, const RankLayoutOptions& options);
// By distributedInfo.pg_config and the groups of collectives: a group whose description is that of a pipeline
// ("pp", "mesh_pp", "pipeline_model_parallel_group" …) and holds the rank; its position there is the stage. Ascend's
// parallel_group_info says the same, of any order of ranks; a rank that says nothing itself is found in others' groups.
RankLayout layout_from_groups(const Trace& trace);

// The sizes that a job states of itself (Ascend's distributed_args); 1 where it leaves one out.
struct SaidSizes {
  int32_t tp = 1, cp = 1, ep = 1, dp = 1, pp = 1;
  int64_t world = 0;  // ranks of the job
};
// Of the first rank that states them; nullopt where none does, or where they do not make `world` ranks.
std::optional<SaidSizes> said_sizes(const Trace& trace);
// By said_sizes() in Megatron's order.
RankLayout layout_from_sizes(const Trace& trace);
// By who sends to whom: ranks joined by messages, in the order of their numbers, where only neighbours (and the two
// ends, of interleaved pipelines) talk to each other.
RankLayout layout_from_messages(const Trace& trace);
// Where the groups of one rank's metadata are, each with what it is for ("pp", "tp", "dp_cp").
struct RankGroup {
  std::string purpose;
  std::vector<int32_t> ranks;  // global, in the group's order
};
std::vector<RankGroup> groups_of_metadata(const Part& part);

// The first of these that knows, as far as it agrees with options.pp; stages 0 when none does.
RankLayout known_layout(const Trace& trace, const RankLayoutOptions& options);

}  // namespace stageline
