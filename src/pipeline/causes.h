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
#include <string_view>
#include <vector>

#include "model/trace.h"
#include "pipeline/run_coverage.h"
#include "pipeline/step_graph.h"
#include "pipeline/theory.h"

namespace stageline {

enum class CauseKind : uint8_t {
  kSlowStage,
  kSlowWorker,
  kSlowLink,
  kLongSequences,
  kPauses,
  kLateWorker,
  kLateStarts,
  kOrder,
  kUnsplit,
};

std::string_view cause_name(CauseKind kind);  // "slow stage", "slow worker", …, "late launches", "wrong order", …

struct CauseTimes {  // of one kind of cell, or of messages (kOther)
  CellKind kind;
  double own_ns, others_ns;  // means of one
};

struct Cause {
  CauseKind kind = CauseKind::kSlowStage;
  int32_t stage = kUnknown;       // of a link: who receives
  int32_t mirror = kUnknown;      // of a stage: the one with the same layers for the other direction, slow as well
  int32_t chunk = kUnknown;       // of a stage with several of which one is slow
  int32_t from_stage = kUnknown;  // of a link
  bool both_ways = false;         // of a link: nobody can tell which way is slow; from_stage < stage
  int32_t dp = kUnknown;          // of a worker; of a link that is slow in one replica
  int32_t part = kUnknown;        // of a worker: its first rank; of late starts: the worst rank
  double ratio = 1;               // its time to the others'; of late starts: share of the worst rank's cells
  std::vector<CauseTimes> times;
  bool collector = false;    // pauses: rare, long and on several ranks, as a garbage collector's are
  int64_t count = 0;         // pauses, late starts: late cells; long sequences: long ones; order: lists
  int64_t of = 0;            // all of them
  std::vector<uint32_t> at;  // pauses that stand at the same places of every step: one cell each, most late first
  int64_t ranks = 0;         // pauses, late starts: on so many
  double pause_ns = 0;       // mean delay of one, beyond the usual
  int64_t slowest_in = 0, steps = 0;  // steps in which it is beyond 1.05 × the others, of those looked at
  bool sometimes = false;  // a worker that is slow in `slowest_in` steps and like the others else; `ratio` is of these
  // Beyond chance by the cells themselves, whatever it costs: how much that is may still differ from step to step.
  bool certain = false;
  double lost_ns = 0;    // of the mean step
  double error_ns = 0;   // standard error of lost_ns over steps; NaN for one
  double saving_ns = 0;  // of evening out, where work can only be moved: stages at their mean, sequences dealt evenly
  // Of a slow stage, by price_in_layers(): the best split into whole layers (by virtual stage) and what it brings;
  // empty and 0 before, and where none gains.
  std::vector<int32_t> new_layers;
  double layers_ns = 0;
  // Layers cannot even it out, for most of it is the embedding's or the head's: they bring less than half of that.
  bool layers_bring_little() const { return layers_ns > 0 && layers_ns < 0.5 * saving_ns; }
  // What a fix brings: whole layers where these cannot even it out; of evening out where that is known to bring
  // something; else all that is lost.
  double price_ns() const { return layers_bring_little() ? layers_ns : saving_ns > 0 ? saving_ns : lost_ns; }
};

struct CauseList {
  std::vector<Cause> causes;  // those that cost at least kLeastLost of the step and more than chance; by price_ns()
  double step_ns = 0;         // mean recorded step, outliers left out
  double error_ns = 0;        // of that mean
  int64_t steps = 0;
  // Those that cost it only once the others are gone, which hide them; lost_ns is of such a step; the largest first.
  std::vector<Cause> hidden;
  std::vector<Cause> doubtful;   // those that cost as much and may be chance, with so few steps; by lost_ns
  double together_ns = 0;        // of the mean step: without any of them (causes of the order added to the rest)
  double together_error_ns = 0;  // its standard error over steps; NaN for one
  bool untold = false;           // nothing was looked for: RunCoverage::untold()
};
inline constexpr double kLeastLost = 0.01;
void sort_causes(std::vector<Cause>& causes);  // by price_ns(), of equal ones by lost_ns

// `theory` and `coverage` of this trace. Steps that are outliers do not count. O(operations · causes).
CauseList find_causes(const Trace& trace, const StepGraph& graph, const TheoryRun& theory, const RunCoverage& coverage);
CauseList find_causes(const Trace& trace, const StepGraph& graph, const TheoryRun& theory);
// Of them the slow links alone, with the same prices: what else costs time is not replayed, and nothing is where no
// link is suspect. together_ns and doubtful are of these.
CauseList find_slow_links(const Trace& trace, const StepGraph& graph, const TheoryRun& theory);

}  // namespace stageline
