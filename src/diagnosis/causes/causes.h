// The causes of lost time in a run, each with its cost: the replay of the recorded step minus the replay without the
// cause. causes.def lists all causes; for example:
//
//   slow stage        its compute takes longer than the other stages'       → as long as theirs
//   slow rank         a rank's, longer than the same stage's other replicas' → as long as theirs
//   slow link         messages from one stage to another                     → the median of the other links
//   long sequences    some micro-batches, forward and backward, on every stage → as long as the usual ones
//   pauses            some cells start late though their input is ready     → as soon as cells usually start
//   late rank       all cells of a rank do                                 → as soon as the others'
//   late starts       many do, on most ranks                                 → as soon as the fastest quarter
//   order             work leaves the order of the recognised schedule       → that order
//   unsplit           a schedule that splits weight gradients off, run without → that order
//
// Each cause is looked for after dividing out others that could be mistaken for it: a long sequence does not make its
// rank slow, nor a slow rank its stage. Definitions and thresholds: docs/reference/causes.md.
#pragma once

#include "diagnosis/causes/cause_list.h"
#include "facts/pipeline_facts.h"

namespace stageline {

// Outlier steps do not count. The steps are replayed on graph_of(run, LaunchRule::kInOrder). Without such a graph, slow
// compute and another order are found by the same rules, but no cause has a price. The extra time of cells on one rank
// then decides which causes are named. Computed once per Run. O(operations · causes).
const CauseList& causes_of(const Run& run);

}  // namespace stageline
