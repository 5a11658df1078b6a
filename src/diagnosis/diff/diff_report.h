// Writes the results of run_diff as sentences and as tables. Definitions: docs/reference/diff.md.
#pragma once

#include "diagnosis/diff/diff_answer.h"
#include "model/table.h"

namespace stageline {

// The lines below are clauses without a full stop.

// Returns a line such as "1f1b · 4 stages × 2 replicas · 8 micro-batches · 20 steps", with the step time.
Text run_line(const DiffRun& run);
// "B takes 48.7 ms (9.5 %) longer a step, ± 0.4 ms", or that nothing differs beyond noise.
Text headline(const RunDiff& diff);
// The time of one micro-batch, where steps have different numbers of them; otherwise empty.
Text per_micro_batch(const RunDiff& diff);
// Returns true when both runs' numbers of micro-batches are known and differ.
bool other_size(const RunDiff& diff);
// Returns true when B is slower by more than `share` of A's step, beyond noise. Where steps have different numbers of
// micro-batches, times of one micro-batch are compared.
bool slower_by_more(const RunDiff& diff, double share);
// Returns the main part of the change: one group, one stage, or one kind of cause; empty if there is none.
Text main_cause(const RunDiff& diff);
Text group_line(const RunDiff& diff, const DiffGroup& group);
Text item_line(const DiffItem& item);
// The link, rank or stage that a group names; nothing where it is of the whole step.
std::vector<Place> places_of(const DiffGroup& group);
// The name of a cause in tables and JSON, for example "long-steps".
const char* cause_id(DiffCause cause);

// Returns the groups that text output lists: the first dozen certain ones, then the rest, which includes all other
// groups. They add up to change_ns.
std::vector<DiffGroup> merged_groups(const RunDiff& diff);

// Tables "runs" (A and B) and "groups" (all of them, kRest last; their effects add up to the change of the mean step).
// Two profiles also have "items": the items of each group.
std::vector<Table> diff_tables(const RunDiff& diff);

// "+48.7 ms", "−3.0 µs".
std::string signed_duration(double ns);
// "+9.5 %"; empty where the share is not finite.
std::string signed_percent(double share);

}  // namespace stageline
