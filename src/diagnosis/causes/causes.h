// What is at fault in a run, and what each cause costs: the replay of the recorded step less the replay without it.
//
//   slow stage        its compute takes longer than the other stages'       → as long as theirs
//   slow worker       a rank's, longer than the same stage's other replicas' → as long as theirs
//   slow link         messages from one stage to another                     → the median of the other links
//   long sequences    some micro-batches, forward and backward, on every stage → as long as the usual ones
//   pauses            some cells start late though nothing holds them up     → as soon as cells usually start
//   late worker       all cells of a rank do                                 → as soon as the others'
//   late starts       many do, on most ranks                                 → as soon as the quickest quarter
//   order             work leaves the order of the recognised schedule       → that order
//   unsplit           a schedule that splits weight gradients off, run without → that order
//
// Each is looked for with the others taken out of the way where they would be mistaken for it: a long sequence is no
// slow rank, a slow rank no slow stage. Definitions and thresholds: docs/howto/explain.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/causes/cause.h"
#include "diagnosis/causes/long_steps.h"
#include "facts/pipeline_facts.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

// What a step holds beside what its compute and its schedule take and what causes are named for: a line of the account.
struct AccountLine {
  // "imbalance", "jitter", "replica-jitter" (replicas that are slow by turns), "message", "late", "tail", "between",
  // "rest": what the replays do not return
  std::string_view id;
  std::string name;                  // of a tail or a gap: the collective, the phase
  CellKind kind = CellKind::kOther;  // of a tail
  double ns = 0;                     // of the mean step; below 0 as in the waterfall
  double error_ns = 0;               // its standard error over steps, where replays tell it; NaN for one step
};

struct CauseList {
  std::vector<Cause> causes;  // those that cost at least kLeastLost of the step and more than chance; by price_ns()
  // Mean period: from a step's start to the next one's. Without long steps and long gaps, but for those that the causes
  // explain.
  double step_ns = 0;
  double gap_ns = 0;    // of it: between steps
  double error_ns = 0;  // of that mean
  double wall_ns = 0;   // mean period of all steps, the long ones too
  int64_t steps = 0;
  std::vector<LongStep> long_steps;  // outliers that the causes above do not explain, by step
  int64_t all_steps = 0;             // the long ones too
  int32_t first_step = 0;
  std::vector<int32_t> step_numbers;  // by step of the graph: what Cause::course counts
  // schedule_ns + together_ns (but for what a few steps alone lost) + these = step_ns.
  std::vector<AccountLine> left;
  // Without all messages, the rest as it was; what of that other causes name is in it. And its standard error.
  double messages_ns = 0, messages_error_ns = 0;
  double schedule_ns = 0;  // what compute and the schedule's own waiting take, with equal stages and no messages
  // Those that cost it only once the others are gone, which hide them; lost_ns is of such a step; the largest first.
  std::vector<Cause> hidden;
  std::vector<Cause> doubtful;  // those that cost as much and may be chance, with so few steps; by lost_ns
  double together_ns = 0;  // without any of them (what is no part of the replay is added: order, time between steps)
  double together_error_ns = 0;  // its standard error over steps; NaN for one
  bool untold = false;           // nothing was looked for: RunCoverage::untold()
};

// Steps that are outliers do not count. Replayed on graph_of(run, LaunchRule::kInOrder); where the run has no such
// graph the list is empty. Made once per Run. O(operations · causes).
const CauseList& causes_of(const Run& run);
// Of them the slow links alone, with the same prices: what else costs time is not replayed, and nothing is where no
// link is suspect. together_ns and doubtful are of these. Expects that graph.
CauseList find_slow_links(const Run& run, const StepGraph& graph);

}  // namespace stageline
