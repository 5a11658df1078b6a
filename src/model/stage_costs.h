// What one cell costs, per stage and kind: counts, mean and percentiles.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct StageCost {
  int32_t stage = 0;
  CellKind kind = CellKind::kForward;
  int64_t count = 0;
  double mean_ns = 0, p50_ns = 0, p95_ns = 0;
  double ratio_to_median = 1;  // mean ÷ median over stages of the same kind's means
};

// Kinds F, B, I, W and F&B, by stage then kind; combinations that do not occur are absent.
// An overlapped pair (overlapped_pairs()) is one cell of kind F&B, and neither an F nor a B.
// Percentiles: linear interpolation between order statistics (numpy's default). `counts`, when
// given, says which cells take part; it is called from several threads.
std::vector<StageCost> stage_costs(const Trace& trace, const std::function<bool(size_t cell)>& counts = {});

// Compute time of one micro-batch on one chunk of each stage: mean forward, plus the time of all
// B, I and W divided by the number of backwards (B and I). So a step that is cut off in the middle
// does not make a stage look slow that has run fewer of its backwards.
struct StageLoad {
  int32_t stage = 0;
  double per_micro_batch_ns = 0;
  double usual_ns = 0;  // the same with medians for means: what one slow cell does not change
  double ratio_to_median = 1;
};
std::vector<StageLoad> stage_loads(const std::vector<StageCost>& costs);

// Mean of the middle two, NaN of none.
double median_of(std::vector<double> values);
double median_in_place(std::span<double> values);  // values change places
double percentile_of_sorted(const std::vector<int64_t>& sorted, double share);
// The same of values in any order, which are partly sorted on the way. Expects values. O(values).
double percentile_of(std::vector<int64_t>& values, double share);

}  // namespace stageline
