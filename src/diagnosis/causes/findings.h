// Findings: what is worth saying about a run, in words, most important first.
#pragma once

#include <vector>

#include "facts/pipeline_facts.h"
#include "model/finding.h"

namespace stageline {

struct Findings {
  Headline headline;
  std::vector<Finding> list;         // when nothing stands out, one finding says so; empty only without compute cells
  std::vector<Finding> offers = {};  // NOLINT(readability-redundant-member-init): explain's, after the list
  std::vector<Finding> others = {};  // NOLINT(readability-redundant-member-init): that ranks wait, listed nowhere
};

// The heaviest first, and before all who is slow: a stage that everyone waits for explains the bubble.
void by_weight(std::vector<Finding>& list);

// What is seen of cells without a price. Expects linked cells. Who is slow, what runs in another order and which steps
// are long is asked here only where no replay can say what it costs (causes_of()); where one can, that ranks wait is
// among `others`. Thresholds: a stage or rank 1.1× its median, a step 1.3× the median step, 10 % of a step outside the
// pipeline. Definitions: docs/analyses/findings.md. O(cells).
Findings find_findings(const Run& run);

}  // namespace stageline
