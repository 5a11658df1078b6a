// Which rank of a job is which pipeline stage, by what traces say about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace stageline {

// What the user said; 0 and "" : nothing.
struct RankLayoutOptions {
  int32_t pp = 0, tp = 0, dp = 0;
  std::string order;  // dimensions from the fastest to the slowest, as Megatron writes it: "tp-cp-ep-dp-pp"
  // Whether they place every rank by its number; --pp alone only says how many stages there are.
  bool explicit_order() const { return pp > 0 && (tp > 0 || dp > 0 || !order.empty()); }
};
// Errors: kUsage for an order with unknown, repeated or missing dimensions.
Status check_rank_order(std::string_view order);

struct RankLayout {
  int32_t stages = 0;          // 0: not known
  std::vector<int32_t> stage;  // by part; kUnknown
  std::vector<int32_t> dp;     // by part; kUnknown
  std::string how;             // for people: "process groups", "--pp"
};

// By the options: rank number → coordinates in the order given (default tp-cp-ep-dp-pp, Megatron's), cp and ep 1.
RankLayout layout_from_options(const Trace& trace, const RankLayoutOptions& options);
// By distributedInfo.pg_config and the groups of collectives: a group whose description is that of a pipeline
// ("pp", "mesh_pp", "pipeline_model_parallel_group" …) and holds the rank; its position there is the stage.
RankLayout layout_from_groups(const Trace& trace);
// By who sends to whom: ranks joined by messages, in the order of their numbers, where only neighbours (and the two
// ends, of interleaved pipelines) talk to each other.
RankLayout layout_from_messages(const Trace& trace);
// The first of the three that knows, as far as it agrees with options.pp; stages 0 when none does.
RankLayout known_layout(const Trace& trace, const RankLayoutOptions& options);

}  // namespace stageline
