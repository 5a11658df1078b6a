// A bound of a step's span that needs no replay.
#pragma once

#include "plan/pipeline.h"

namespace stageline::plan {

// The bound is never above the replayed span. It is the sum, for the worst rank, of the time before its first cell, its
// work, the wait for the first gradient and the time after its last cell. Equal cells of a rank are counted once, in
// O(cells); a bound is O(kinds of cells + stages).
class LowerBound {
 public:
  explicit LowerBound(const PlanProblem& problem);  // which has to outlive it
  int64_t ns(const std::vector<LayerTime>& times) const;

  // Cells of a rank that take the same time at any times of the stages, and how many of them are where.
  struct Alike {
    ScheduleCell cell;                         // of micro-batch 0
    int64_t warm = 0, rest = 0, trailing = 0;  // before the first backward, from it on, weight gradients at the end
  };
  struct Rank {
    std::vector<Alike> cells;
    int32_t first_stage = -1, first_backward = -1, last_backward = -1;
    int64_t warm = 0, trailing = 0;  // cells
  };
  const std::vector<Rank>& ranks() const { return ranks_; }

 private:
  const PlanProblem& p_;
  bool splits_;
  std::vector<Rank> ranks_;
};

}  // namespace stageline::plan
