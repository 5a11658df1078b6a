// What the comparison of two runs says: what they are, and the change of a step group by group. run_diff.h makes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/words.h"
#include "model/trace.h"

namespace stageline {

// What a run is, before its times.
struct DiffRun {
  std::string schedule;  // "1f1b"; "" when none is recognised
  int32_t stages = 0, replicas = 0, context_parallel = 1, ranks = 0, chunks = 1;
  int32_t micro_batches = 0;        // of most steps; 0: unknown
  int64_t steps = 0, left_out = 0;  // that are compared cell by cell; long ones, which are told apart
  // Mean period, from a step's start to the next one's, long steps and gaps too; its standard error; NaN for one step.
  double step_ns = 0, error_ns = 0;
};

enum class DiffCause : uint8_t {
  kSchedule,  // other schedule, sizes or order: B's graph with A's times
  kCompute,   // (stage, kind), or what a cause of B's own is told of (what)
  kMessages,  // (from stage, to stage): transfer itself, without waiting
  kDelay,     // (stage): between what an operation waits for and its start; of what follows the pipeline (type); of
              // several stages that are beyond noise only together kUnknown
  kTail,      // one type of collective, optimizer or other work
  kBetween,   // between steps, by the name of what was recorded there (type); `sometimes`: what a few gaps hold beyond
  kLong,      // steps that are outliers: what they take beyond the others
  kMore,      // groups beyond kMostDiffGroups, those of least change
  kRest,      // what the replays leave open
};
inline constexpr size_t kMostDiffGroups = 64;

struct DiffGroup {
  DiffCause cause = DiffCause::kRest;
  int32_t stage = kUnknown, from_stage = kUnknown;  // messages: from_stage → stage
  CellKind kind = CellKind::kOther;
  std::string type;      // of kTail, and of kDelay before such
  int64_t count = 0;     // operations of B in the steps compared
  double per_rank = 0;   // of them, of one rank in one step
  double a_ns = 0;       // their mean, with A's times
  double b_ns = 0;       // and with B's
  double effect_ns = 0;  // per step
  double error_ns = 0;   // standard error of effect_ns over pairs of steps; NaN for one pair
  bool sure = false;     // beyond its uncertainty, and at least kLeastDiffShare of A's step
  // Of B: the part that four fifths of the change are in, where the stage has others; and its rank.
  int32_t part = kUnknown, rank = kUnknown;
  bool sometimes = false;   // of kBetween
  int32_t step = kUnknown;  // of kLong: the longest one
  Text why;                 // what made it so, a clause; may be empty
  int64_t paused = 0;       // of kDelay: operations that hold nearly all of it, when they are few; else 0
  double pause_ns = 0;      // by which their mean start became later
  // Of kCompute: what B's own causes call the operations that hold the change, "micro-batch 0, on every stage"; else
  // empty, and the stage's.
  Text what;
  // A cause of B is sure that these operations lose time, and A has no such cause: only how much it is differs from
  // step to step.
  bool certain = false;
  // Of delays named by a link: nobody recorded its messages, so that the host may be late as well.
  bool guessed = false;
};

struct RunDiff {
  DiffRun a, b;
  double change_ns = 0, error_ns = 0;  // of the mean step: B − A
  bool sure = false;                   // the same two conditions
  int64_t independent = 0;             // pairs of steps that share none: what errors stand on
  std::vector<Text> changes;           // of schedule and sizes: "B has 8 stages, A 4"
  std::vector<DiffGroup>
      groups;             // kSchedule (where the shape changed), then by effect, kRest last; they add up to change_ns
  int64_t matched = 0;    // operations of B with one of A that has the same place
  int64_t unmatched = 0;  // that got a mean of A's, or kept their own time where A has nothing like it
  int64_t unused = 0;     // of A without one of B
  Diagnostics notes;
};
inline constexpr double kLeastDiffShare = 0.002;  // of A's step, below which no change is told

}  // namespace stageline
