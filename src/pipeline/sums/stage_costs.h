// The cost of one cell of each kind on each stage: count, mean and percentiles.
#pragma once

#include "model/trace.h"

namespace stageline {

struct StageCost {
  int32_t stage = 0;
  CellKind kind = CellKind::kForward;
  int64_t count = 0;
  double mean_ns = 0, p50_ns = 0, p95_ns = 0;
  double ratio_to_median = 1;  // this mean ÷ the median of the stages' means of the same kind
};

// Returns the costs of F, B, I, W and F&B, by stage and then kind; combinations that do not occur are absent. An
// overlapped pair (overlapped_pairs()) is one cell of kind F&B and is counted neither as F nor as B. Percentiles
// interpolate linearly between order statistics, as numpy does by default. `counts`, when given, says which cells take
// part; it is called from several threads.
std::vector<StageCost> stage_costs(const Trace& trace, const std::function<bool(size_t cell)>& counts = {});

// The compute time of one micro-batch on one chunk of a stage. It is the mean forward, plus the time of all B, I and W
// divided by the number of backwards (B and I). A step that is cut off in the middle has fewer backwards. Dividing by
// the stage's own backwards keeps it from making the stage look slow.
struct StageLoad {
  int32_t stage = 0;
  double per_micro_batch_ns = 0;
  double usual_ns = 0;  // the same with medians in place of means, so that one slow cell does not change it
  double ratio_to_median = 1;
};
std::vector<StageLoad> stage_loads(const std::vector<StageCost>& costs);

// The mean time of one micro-batch on a virtual stage, for each direction: forward, backward (B or I), weight gradient.
inline constexpr size_t kDirections = 3;
using DirectionCost = std::array<double, kDirections>;

// A pipeline as its virtual stages, in the order in which a micro-batch passes through them.
struct StageCosts {
  std::vector<DirectionCost> cost_ns;  // for each virtual stage
  std::vector<int32_t> owner;          // for each virtual stage the rank that holds it
};

}  // namespace stageline
