// Times of layers from a recorded run: the costs of its virtual stages, regressed on what the stages contain.
//
//   cost of a virtual stage = Σ layers of a kind · time of that kind + embedding (first) + head (last)
//
// A stage whose layers take longer than the same layers elsewhere has a slow rank: it makes no layer dear.
#pragma once

#include "pipeline/sums/stage_costs.h"
#include "plan/pipeline.h"

namespace stageline::plan {

// The measurements of a recorded run. Filled by whoever can measure it (cli/plan_from_run).
struct RecordedRun {
  std::string schedule;
  ScheduleSizes sizes;
  int32_t replicas = 1;
  StageCosts stages;
  std::vector<std::vector<DirectionCost>> steps;  // the stages' costs in each step alone
  std::vector<int32_t> layers;                    // of each virtual stage
  std::vector<double> there, back;                // the time of a message over each link
  double weight_share = 0.5;                      // W ÷ (I + W), for runs that did not split the backward
  double overlap = 0;                             // F&B ÷ (F + B) where it was measured, else 0
  std::vector<int64_t> peak_bytes;                // of each stage, −1: not measured; empty: of none
  double step_ns = 0, error = 0;                  // mean step; the error of the model as a share of it
};

struct RecordedTimes {
  Times times;
  std::vector<LayerTime> stages;                 // of each virtual stage, as recorded
  std::vector<std::pair<int32_t, double>> slow;  // ranks that take longer than their layers, and how much as a share
  bool kinds_distinct = true;                    // otherwise all kinds have one price
  double residual = 0;                           // largest difference of a stage from its fit, as a share
};
// Least squares over the virtual stages between the ends, without those of slow ranks; what the ends cost beyond their
// layers is embedding and head. With two virtual stages the cheaper layer is the price of both. O(stages² · kinds²).
RecordedTimes times_of_run(const RecordedRun& run, const std::vector<uint8_t>& kind_of, size_t kinds);
// The times of runs of as many steps, drawn from this run's with repetition. O(count · stages² · kinds²).
std::vector<Times> resampled_times(const RecordedRun& run, const std::vector<uint8_t>& kind_of, size_t kinds,
                                   size_t count);

}  // namespace stageline::plan
