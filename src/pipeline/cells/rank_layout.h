// Finds out which rank of a job is which pipeline stage, by what the traces say about it.
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

// Checks an order of dimensions. Errors: kUsage for unknown, repeated or missing dimensions.
Status check_rank_order(std::string_view order);

// Uses the options: a rank's number gives its coordinates in the given order (default tp-cp-ep-dp-pp, Megatron's), with
// ep 1. Every context-parallel index counts as a replica of its own, so RankLayout::dp counts both.
RankLayout layout_from_options(const Trace& trace, const RankLayoutOptions& options);
// Uses distributedInfo.pg_config and the groups of collectives. A pipeline is a group that holds the rank and whose
// description is that of a pipeline ("pp", "mesh_pp", "pipeline_model_parallel_group" …); the rank's position in the
// group is its stage. Ascend's parallel_group_info gives the same, in any order of ranks. A rank without such data is
// looked for in the groups of others.
RankLayout layout_from_groups(const Trace& trace);

// The sizes that a job states about itself (Ascend's distributed_args); 1 where it leaves one out.
struct StatedSizes {
  int32_t tp = 1, cp = 1, ep = 1, dp = 1, pp = 1;
  int64_t world = 0;  // number of ranks of the job
};
// Returns the sizes of the first rank that states them; nullopt where none does, or where they do not multiply to
// `world` ranks.
std::optional<StatedSizes> stated_sizes(const Trace& trace);
// Uses stated_sizes() and Megatron's order.
RankLayout layout_from_sizes(const Trace& trace);
// Uses the senders and receivers of messages: ranks that messages connect are a pipeline in the order of their numbers.
// Only neighbours (and the two ends, in interleaved pipelines) may send to each other.
RankLayout layout_from_messages(const Trace& trace);
// A group in one rank's metadata, with what it is for ("pp", "tp", "dp_cp").
struct RankGroup {
  std::string purpose;
  std::vector<int32_t> ranks;  // global ranks in the group's own order
};
std::vector<RankGroup> groups_of_metadata(const Part& part);
// Returns the ranks that share experts with this one ("exp", "mesh_ep", "EXPERT_MODEL_PARALLEL_GROUP"), in the group's
// order; empty when no such group was recorded.
std::vector<int32_t> expert_ranks(const StringPool& names, const Part& part);

// Returns the first of these layouts that is known and agrees with options.pp; `stages` is 0 when there is none.
RankLayout known_layout(const Trace& trace, const RankLayoutOptions& options);

}  // namespace stageline
