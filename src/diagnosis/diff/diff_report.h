// What run_diff found, in words and in tables. Definitions: docs/howto/diff.md.
#pragma once

#include <string>
#include <vector>

#include "base/words.h"
#include "diagnosis/diff/run_diff.h"
#include "model/table.h"

namespace stageline {

// Lines are clauses without a full stop.

// "1f1b · 4 stages × 2 replicas · 8 micro-batches · 20 steps · 512 ms a step".
Text run_line(const DiffRun& run);
// "B takes 48.7 ms (9.5 %) longer a step, ± 0.4 ms": or that nothing differs beyond noise.
Text headline(const RunDiff& diff);
// Where steps hold other numbers of micro-batches: the time of one; else empty.
Text per_micro_batch(const RunDiff& diff);
// Whether steps hold other numbers of micro-batches, both known.
bool other_size(const RunDiff& diff);
// B is slower by more than `share` of A's step, beyond noise; where steps hold other numbers of micro-batches, a
// micro-batch of B is.
bool slower_by_more(const RunDiff& diff, double share);
// What most of the change is: one group, one stage, or one kind of cause; empty where no such thing is.
Text main_cause(const RunDiff& diff);
Text group_line(const RunDiff& diff, const DiffGroup& group);
// "long-steps": how tables and JSON call it.
const char* cause_id(DiffCause cause);

// Groups that text output lists: the first dozen that are sure, the rest with what is not added to it. They add up to
// change_ns.
std::vector<DiffGroup> told_groups(const RunDiff& diff);

// "runs" (A and B) and "groups" (all of them, kRest last; effects add up to the change of the mean step).
std::vector<Table> diff_tables(const RunDiff& diff);

// "+48.7 ms", "−3.0 µs".
std::string signed_duration(double ns);
// "+9.5 %"; empty where the share is of nothing.
std::string signed_percent(double share);

}  // namespace stageline
