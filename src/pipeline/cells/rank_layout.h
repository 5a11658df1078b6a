// Finds out which rank of a job is which pipeline stage, by what the traces say about it.
#pragma once

#include "model/trace.h"

namespace stageline {

// The user's options; 0 and "" mean that an option was not given.
struct RankLayoutOptions {
  int32_t pp = 0, tp = 0, dp = 0;
  std::string order;  // dimensions from the fastest to the slowest, as Megatron writes it: "tp-cp-ep-dp-pp"
  int32_t cp = 0;     // context-parallel ranks of one replica
  // expert-parallel ranks; outside of experts they are data-parallel ranks, so stages do not depend on them.
  int32_t ep = 0;
  // Returns true where the options place every rank by its number. --pp alone only gives the number of stages.
  bool explicit_order() const { return pp > 0 && (tp > 0 || dp > 0 || cp > 0 || !order.empty()); }
};

struct RankLayout {
  int32_t stages = 0;          // 0 when not known
  std::vector<int32_t> stage;  // for each part; kUnknown when not known
  std::vector<int32_t> dp;     // for each part; kUnknown when not known
  Text how;                    // how it was found, for people: "process groups", "--pp"
};

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

// Errors: kUsage where `order` leaves out a dimension whose size the user gives as above 1; other dimensions left out
// count as 1. Whether the words of the order are dimensions at all is checked by check_rank_order().
Status check_rank_layout(const RankLayoutOptions& options);

// Returns the reason why these ranks cannot have this layout, according to process groups and messages; "" when nothing
// contradicts it. Options with such a reason are ignored in known_layout(), and outputs that show a layout give the
// reason.
Text contradiction_of(const Trace& trace, const RankLayout& stated);

// Finds every rank's place in the parallel strategy: its tensor, context, expert, data and pipeline index.
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

// Fills stage and dp of every part where they are unknown, and says in Diagnostics how they were found:
//  1. options.pp > 0: the user gave it; ranks count dp-major, then stage, then tensor-parallel peers. If tp, dp
//     or an order is given too, every rank's place follows from its number (pipeline/cells/rank_layout.h).
//  2. From the order of work: the forwards before a rank's first backward fall from stage to stage
//     in 1F1B, Eager 1F1B, VPP and the zero-bubble schedules; equal neighbours are tensor-parallel
//     peers, a repeating pattern is data parallelism. A rank whose number is missing keeps its place: it is taken to
//     be what the ranks at the same place of other replicas are.
//  3. From time (FThenB): ranks whose first forward starts together are one stage.
//  4. Otherwise all ranks are taken as one pipeline in the order of their numbers. Returns false in this case, and when
//     there is a single rank without a known place.
bool infer_layout(Trace& trace, const RankLayoutOptions& options);

}  // namespace stageline
