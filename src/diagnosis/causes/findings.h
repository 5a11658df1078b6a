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
  std::vector<Finding> others = {};  // NOLINT(readability-redundant-member-init): explain's, listed nowhere
};

// Expects linked cells. Thresholds: a stage or rank 1.1× its median, a step 1.3× the median step,
// 10 % of a step outside the pipeline. Definitions: docs/analyses/findings.md. O(cells).
Findings find_findings(const Run& run);

}  // namespace stageline
