// The bytes of a pipeline's ranks in any order and split of the layers, where the model is described.
#pragma once

#include "plan/bytes.h"

namespace stageline {

// The peak of a stage as the run measured it, and as the model says.
struct MeasuredStage {
  int32_t stage = 0;
  double measured_bytes = 0, model_bytes = 0;
};

struct StageBytes {
  plan::Model model;
  plan::Layout layout;          // pp is the order's
  plan::MemoryOptions options;  // limit 0: none is given
  bool full = false;            // whole layers are computed again

  // For each stage the peak that the run measured, −1 where it did not; empty: none.
  std::vector<int64_t> measured;
  // For each stage what was measured beyond the model, which the peaks contain from then on; empty: nothing.
  std::vector<int64_t> beyond;

  // Sets `beyond` from the order and the layers that ran. Returns the stages that were measured; none where the order
  // has another number of them.
  std::vector<MeasuredStage> compare_with(const Schedule& ran, const std::vector<int32_t>& layers);
  // Returns the number of layers of each virtual stage, spread evenly.
  std::vector<int32_t> even(int32_t stages) const;
  // The peak of each rank. `layers` are those of each virtual stage; others are spread evenly.
  std::vector<plan::RankPeak> peaks(const Schedule& schedule, std::vector<int32_t> layers) const;
  double needed_by(const plan::RankPeak& peak, int32_t ranks) const;

  // The rank that needs most.
  struct Most {
    int32_t rank = 0;
    double bytes = 0, needed = 0;
  };
  Most most(const Schedule& schedule, const std::vector<int32_t>& layers) const;
  bool fits(const Most& most) const { return options.limit <= 0 || most.needed <= options.limit; }
};

}  // namespace stageline
