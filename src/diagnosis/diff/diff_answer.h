// The result of comparing two runs: their descriptions, and the change of a step group by group. diff_runs() makes it.
#pragma once

#include "model/place.h"
#include "model/trace.h"

namespace stageline {

// The description of a run, without its times.
struct DiffRun {
  std::string schedule;  // "1f1b"; "" when none is recognised
  int32_t stages = 0, replicas = 0, context_parallel = 1, ranks = 0, chunks = 1;
  int32_t micro_batches = 0;        // the most common number; 0: unknown
  bool profile = false;             // of a profiler, without a pipeline: it has ranks, steps and their time
  int64_t steps = 0, left_out = 0;  // steps that are compared cell by cell; long ones, which are reported separately
  // Mean period from a step's start to the next one's, including long steps and gaps, and its standard error (NaN for
  // one step).
  double step_ns = 0, error_ns = 0;
};

enum class DiffCause : uint8_t {
  kSchedule,  // another schedule, other sizes or another order: the effect of B's graph with A's times
  kCompute,   // work of a (stage, kind), or the work of one of B's causes (`what`)
  kMessages,  // messages of a (from stage, to stage): the transfer itself, without waiting
  // Time between what operations of a (stage) wait for and their start; of what follows the pipeline, by `type`; with
  // stage kUnknown, several stages that are beyond noise only together.
  kDelay,
  kTail,  // one type of collective, optimizer or other work after the pipeline
  // Time between steps, by the name of what was recorded there (`type`); `sometimes`: what a few gaps hold beyond the
  // others.
  kBetween,
  kLong,  // outlier steps: their time beyond the others
  kPart,  // of two profiles: a part of the bar, whose id is the group's `type`
  kMore,  // groups beyond kMaxDiffGroups, those that changed least
  kRest,  // what the replays do not explain
};
inline constexpr size_t kMaxDiffGroups = 64;

// The kind of a profile part's items. It applies to computing and communication; the others are always operators.
enum class DiffItemsBy : uint8_t {
  kOperator,  // operators with their kernels, collectives
  kClass,     // attention, matmul, …, forward and backward apart; collectives by kind and group
  kModule,    // modules by their path, forward and backward apart
};

// One item of a part of a profile: an operator with its kernels, a collective, a copy, or work of the host. Times are
// of a mean step and rank.
struct DiffItem {
  Text name;
  Text kernels;    // what became of them, as a clause; may be empty
  std::string at;  // the line of the program or the module where most of it is; "" unknown
  std::vector<Place> places;
  double a_ns = 0, b_ns = 0, effect_ns = 0, error_ns = 0;
  double a_count = 0, b_count = 0;  // kernels a step
  int32_t rank = kUnknown;          // the rank that holds four fifths of the change, where there are others too
  bool sure = false;
};

struct DiffGroup {
  DiffCause cause = DiffCause::kRest;
  int32_t stage = kUnknown, from_stage = kUnknown;  // messages: from_stage → stage
  CellKind kind = CellKind::kOther;
  std::string type;      // of kTail, and of kDelay before such work
  int64_t count = 0;     // operations of B in the compared steps
  double per_rank = 0;   // how many of them one rank has in one step
  double a_ns = 0;       // their mean with A's times
  double b_ns = 0;       // their mean with B's times
  double effect_ns = 0;  // per step
  double error_ns = 0;   // standard error of effect_ns over pairs of steps; NaN for one pair
  bool sure = false;     // the effect is beyond its uncertainty and at least kMinDiffShare of A's step
  // Of B: the part that holds four fifths of the change, where its stage has other ranks too; and that part's rank.
  int32_t part = kUnknown, rank = kUnknown;
  bool sometimes = false;   // of kBetween
  int32_t step = kUnknown;  // of kLong: the longest one
  Text why;                 // what made it so, as a clause; may be empty
  int32_t late = kUnknown;  // of kPart: the rank that the others wait for in the slower run only
  int64_t paused = 0;  // of kDelay: number of operations that hold nearly all of the change where these are few; else 0
  double pause_ns = 0;  // by how much their mean start became later
  // Of kPart: its label. Of kCompute: what B's own causes call the operations that hold the change, as "micro-batch 0,
  // on every stage". Empty: the work of `stage`.
  Text what;
  // A cause of B is certain that these operations lose time, and A has no such cause: only how much it loses differs
  // from step to step.
  bool certain = false;
  // For delays that are named after a link: its messages were not recorded, so the host may be late instead.
  bool guessed = false;
  std::vector<DiffItem> behind;  // of kPart, largest change first; the smallest are left out
};

struct RunDiff {
  DiffRun a, b;
  double change_ns = 0, error_ns = 0;  // of the mean step: B − A
  bool sure = false;                   // the same two conditions as for groups
  DiffItemsBy items_by = DiffItemsBy::kOperator;
  double certain_ns = 0;      // of profiles: the part of the change that is beyond noise
  int64_t independent = 0;    // pairs of steps that share no step; errors are computed with this number
  std::vector<Text> changes;  // changes of schedule and sizes: "B has 8 stages, A 4"
  std::vector<DiffGroup>
      groups;             // kSchedule (where the shape changed), then by effect, kRest last; they add up to change_ns
  int64_t matched = 0;    // operations of B for which A has one at the same place
  int64_t unmatched = 0;  // operations of B that got a mean of A's times, or kept their own where A has nothing similar
  int64_t unused = 0;     // operations of A without one of B
  Diagnostics notes;
};
inline constexpr double kMinDiffShare = 0.002;  // share of A's step; a smaller change is not reported

// Compares two runs: how much longer a step became, and why, group by group, with parts that add up.
//
//   step of A ── the shape of B, with A's times ──▶ schedule and sizes
//             ── B's times put in, one group after the other, those of most effect first ──▶ stage 2's backward, …
//             ── what replays do not explain ──▶ rest
//   step of B
//
// Every step of B is paired with one of A, by order. A group's effect is the change of the replay of the step graph
// (pipeline/replay/step_graph.h) when the group's times become B's, as a mean over the pairs. Its uncertainty is the
// standard error over the pairs. Definitions: docs/reference/diff.md.
// Errors: kBadInput when one of the runs ("A" or "B", which the message says) has no operations with steps, or clocks
// that cannot be compared. O(operations · log operations + operations · groups).
Result<RunDiff> diff_runs(const Trace& a, const Trace& b);

}  // namespace stageline
