// Findings: what is worth saying about a run, in words, most important first.
#pragma once

#include "facts/pipeline_facts.h"
#include "model/finding.h"

namespace stageline {

struct Findings {
  Headline headline;
  std::vector<Finding> list;         // one finding says so when nothing stands out; empty only without compute cells
  std::vector<Finding> offers = {};  // NOLINT(readability-redundant-member-init): by explain only; shown after the list
  // Findings that only report that ranks wait; they are listed nowhere.
  std::vector<Finding> others = {};  // NOLINT(readability-redundant-member-init)
};

// Sorts by weight, but puts findings of who is slow first: a stage that everyone waits for explains the bubble.
void by_weight(std::vector<Finding>& list);

// Findings from cells without a replay. Expects linked cells. Where a replay can estimate what causes cost, explain()
// reports these, and findings that ranks wait go to `others`; otherwise the causes come first, without a cost.
// Thresholds: a step at 1.3× the median step, 10 % of a step outside the pipeline. Definitions:
// docs/analyses/findings.md. O(cells).
Findings find_findings(const Run& run);

}  // namespace stageline
