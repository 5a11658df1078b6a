// The placement of experts on ranks, and the load that each rank gets by it. Loads are rows (tokens, once for each
// expert that they are sent to).
#pragma once

#include "model/table.h"
#include "model/trace.h"

namespace stageline {

// The rank of each expert, or of each copy of one, with as many on each rank.
struct Placement {
  std::vector<size_t> rank_of;
  bool sure = false;  // no other placement has a fullest rank with less
};
// The largest first, each on the emptiest rank with room, then exchanges with the fullest rank until none helps.
// O(experts² · exchanges).
Placement place_experts(const std::vector<double>& load, size_t ranks);

// Rows of each rank. An empty `rank_of`: experts one after the other, as many on each rank.
std::vector<double> rank_loads(const std::vector<double>& load, size_t ranks, const std::vector<size_t>& rank_of = {});
// The largest ÷ the mean; 0 where nothing was routed.
double max_over_mean(const std::vector<double>& loads);

// Copies of experts that share their expert's rows alike, `extra` more than experts, each where a copy has most rows
// (DeepSeek's EPLB begins so).
struct ExpertCopies {
  std::vector<size_t> expert_of;                                     // of each copy, in order
  Placement placement;                                               // of the copies
  std::vector<double> split(const std::vector<double>& load) const;  // rows of each copy
};
ExpertCopies copy_experts(const std::vector<double>& load, size_t ranks, int64_t extra);

struct RouterQuestion {
  size_t ranks = 1;     // that share the experts
  double capacity = 0;  // factor; 0: none
  int64_t extra = 0;    // copies
};
// One row for each block and layer of Part::router_loads. Placements are learned from the first half of the steps and
// judged on the second.
Table router_layers(const Trace& trace, const RouterQuestion& question, Diagnostics& notes);

}  // namespace stageline
