// Findings: what is worth saying about a run, in words, most important first.
#pragma once

#include "facts/pipeline_facts.h"
#include "model/finding.h"

namespace stageline {

struct Cause;
struct CauseList;
struct Recognition;
struct TheoryRun;

struct Findings {
  Headline headline;
  std::vector<Finding> list;    // one finding says so when nothing stands out; empty only without compute cells
  std::vector<Finding> offers;  // by explain only; shown after the list
  // Findings that only report that ranks wait; they are listed nowhere.
  std::vector<Finding> others;
};

// Sorts by weight, but puts findings of who is slow first: a stage that everyone waits for explains the bubble.
void by_weight(std::vector<Finding>& list);

// Findings from cells without a replay. Expects linked cells. Where a replay can estimate what causes cost, explain()
// reports these, and findings that ranks wait go to `others`; otherwise the causes come first, without a cost.
// Thresholds: a step at 1.3× the median step, 10 % of a step outside the pipeline. Definitions:
// docs/analyses/findings.md. O(cells).
Findings find_findings(const Run& run);

// The finding of one cause of the list, with price and evidence. `recognition` is of the same trace.
Finding cause_finding(const Trace& trace, const CauseList& causes, const Cause& cause, const Recognition& recognition);

// One finding for each cause, in the list's order; but those that belong together are one.
std::vector<Finding> cause_findings(const Trace& trace, const CauseList& causes, const Recognition& recognition);

// schedule.undelayed: all weight gradients, on at least two stages, run right after their own input gradients. Must not
// be asked of a part of a run, whose schedule is unknown. O(cells).
void add_undelayed(const Trace& trace, const TheoryRun& run, std::vector<Finding>& out);

// There are two findings on runs with a recognised schedule. schedule.late_start: in at least four fifths of the steps,
// a stage starts its first forward late. Its rank was free, and the previous stage has finished a later forward too. It
// is reported only if both are on one clock; its weight is the mean delay ÷ the step. A finding schedule.late gives one
// reason (late messages, late launches, unexplained gaps, cells longer than their mean) for most of the time beyond
// theory. The time is along the waits that lead to the ends of steps, and at least 5 % of the span. It is reported on
// one clock only, and not if schedule.late_start reports the same. Definitions: docs/analyses/findings.md. O(cells).
void add_late(const Trace& trace, const TheoryRun& run, double pipeline_share, std::vector<Finding>& out);

}  // namespace stageline
