// The best split of a pipeline's layers, with a proof of how far from the best it may be.
//
// With one chunk a rank, what a stage waits for and what follows it depend only on where its own layers begin and end,
// so the smallest bound of all splits is a path through a table. Splits whose bound is below the best replay are
// replayed in order of their bounds; when none is left, the best is proven. With several chunks a rank, ranks are
// balanced first and single layers moved while the replay improves; small cases are tried whole.
#pragma once

#include "plan/pipeline.h"

namespace stageline::plan {

struct Budget {
  int64_t work = 20'000'000;       // for one pipeline, in replayed cells: some 50 ns each
  int64_t give_up_ns = INT64_MAX;  // plans from this span on are of no use
};

struct SplitAnswer {
  std::optional<Plan> best;  // nothing where no split fits, or where all are too slow
  int64_t bound_ns = 0;      // no split of this pipeline is faster
  bool fits = false;         // some split fits
  int64_t work = 0;          // that was done
  double gap() const {
    return best && best->span_ns > 0 ? 1 - static_cast<double>(bound_ns) / static_cast<double>(best->span_ns) : 0;
  }
};
// Deterministic: the work is counted, not timed.
SplitAnswer best_split(const PlanProblem& problem, const Budget& budget = {});

// The plan with these layers and the least recompute; nothing where it does not fit. Errors: those of replay().
Result<std::optional<Plan>> price_split(const PlanProblem& problem, const std::vector<int32_t>& layers);

}  // namespace stageline::plan
