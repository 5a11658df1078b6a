// Where the steps of a training without a pipeline went (DDP, FSDP and what is built on them), from a recording of it.
// On every rank each instant of a step has one owner, and the time in collectives is split into transfer and waiting
// for other ranks.
//
//   rank 0   data wait │ forward │ backward ······ wait for all_reduce │ optimizer │ (nothing recorded) │ data wait │ …
//   rank 1   data wait │ forward, longer │ backward ········ wait      │ optimizer │ …
//                                          ^ all wait until the last rank is there: its own wait is what the transfer
//                                          takes
//
// Only durations are compared, so this works on clocks that were not aligned.
#pragma once

#include "model/trace.h"

namespace stageline {

// In order of precedence: an instant that lies in two of them belongs to the first. Collectives that overlap the work
// on a lane of their own have no part.
enum class TrainingPart : uint8_t { kCollective, kInput, kBackward, kForward, kOptimizer, kOther };
inline constexpr size_t kTrainingParts = 6;

// One step of a rank: from its first piece of work, which may be a wait for data, to that of the next step.
struct TrainingStep {
  int32_t step = 0;
  int64_t start_ns = 0, end_ns = 0;
  ByEnum<TrainingPart, double, kTrainingParts> ns = {};
  double transfer_ns = 0;  // part of kCollective: as long as the rank that came last needed
  double waiting_ns = 0;   // the rest of kCollective: until the last rank had come
  double whole_ns() const { return end_ns - start_ns; }
  // The step without the time that it waited for other ranks.
  double own_ns() const { return whole_ns() - waiting_ns; }
  double of(TrainingPart part) const { return ns[part]; }
};

struct TrainingRank {
  int32_t part = 0, rank = 0;
  std::vector<TrainingStep> steps;  // those that every rank has, in order: index k is the same step on all ranks
};

// All collectives of one name: the time for which the ranks were blocked in them, per step and rank.
struct TrainingCollective {
  std::string name;
  double transfer_ns = 0, waiting_ns = 0;
  int64_t count = 0;  // calls per step and rank
  double bytes = 0;   // per step and rank, over calls that say it; 0: none does
};

struct TrainingTime {
  bool reported = false;  // false: not a training without a pipeline, or no step that every rank began
  std::vector<TrainingRank> ranks;
  std::vector<TrainingCollective> collectives;  // by time, the longest first
  double hidden_ns = 0;                         // time of collectives that overlap the work, per step and rank
  int32_t first_left_out = -1;  // the first step, which is a warm-up, where at least four were recorded; −1: none
  size_t step_count() const { return ranks.empty() ? 0 : ranks[0].steps.size(); }
};

// O(slices log slices).
TrainingTime training_time(const Trace& trace);

}  // namespace stageline
