// Times of layers from a recorded run: the costs of its virtual stages, regressed on what the stages contain.
//
//   cost of a virtual stage = Σ layers of a kind · time of that kind + embedding (first) + head (last)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/layer_split.h"
#include "plan/pipeline.h"

namespace stageline::plan {

// What a run showed. Filled by whoever can measure it (cli/plan_question).
struct RecordedRun {
  std::string schedule;
  ScheduleSizes sizes;
  StageCosts stages;
  std::vector<int32_t> layers;      // of each virtual stage
  std::vector<double> there, back;  // the time of a message over each link
  double weight_share = 0.5;        // W ÷ (I + W), for runs that did not split the backward
  double overlap = 0;               // F&B ÷ (F + B) where it was measured, else 0
  double step_ns = 0, error = 0;    // mean step; the error of the model as a share of it
};

struct RecordedTimes {
  Times times;
  bool kinds_told_apart = true;  // otherwise all kinds have one price
  double residual = 0;           // largest difference of a stage from its fit, as a share
};
// Least squares over the virtual stages between the ends; what the ends cost beyond their layers is embedding and head.
// With two virtual stages the cheaper layer is the price of both. O(stages · kinds²).
RecordedTimes times_of_run(const RecordedRun& run, const std::vector<uint8_t>& kind_of, size_t kinds);

}  // namespace stageline::plan
