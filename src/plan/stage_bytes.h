// The bytes of a pipeline's ranks in any order and split of the layers, where the model is described.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/bytes.h"
#include "plan/model.h"

namespace stageline::plan {

struct StageBytes {
  Model model;
  Layout layout;          // pp is the order's
  MemoryOptions options;  // limit 0: none is given
  bool full = false;      // whole layers are computed again

  // Returns the number of layers of each virtual stage, spread evenly.
  std::vector<int32_t> even(int32_t stages) const;
  // The peak of each rank. `layers` are those of each virtual stage; others are spread evenly.
  std::vector<RankPeak> peaks(const Schedule& schedule, std::vector<int32_t> layers) const;
  double needed_by(const RankPeak& peak, int32_t ranks) const;

  // The rank that needs most.
  struct Most {
    int32_t rank = 0;
    double bytes = 0, needed = 0;
  };
  Most most(const Schedule& schedule, const std::vector<int32_t>& layers) const;
  bool fits(const Most& most) const { return options.limit <= 0 || most.needed <= options.limit; }
};

}  // namespace stageline::plan
