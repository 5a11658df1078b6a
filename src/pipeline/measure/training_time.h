// Where the steps of a training without a pipeline went (DDP, FSDP and what stands on them), as its recording says it:
// per rank and step one owner for each instant, and of the time in collectives what was transfer and what waiting for
// others.
//
//   rank 0   data wait │ forward │ backward ······ wait for all_reduce │ optimizer │ (nothing recorded) │ data wait │ …
//   rank 1   data wait │ forward, longer │ backward ········ wait      │ optimizer │ …
//                                          ^ all wait until the last rank is there: its own wait is what the transfer
//                                          takes
//
// Durations only: ranks on clocks that nobody compared are told apart as well.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stageline {

// In order of precedence: what lies in two belongs to the first. Collectives that run beside the work have no share.
enum class TrainingPart : uint8_t { kCollective, kInput, kBackward, kForward, kOptimizer, kOther };
inline constexpr size_t kTrainingParts = 6;

// A step of a rank: from its first piece of work, its data wait included, to the next step's.
struct TrainingStep {
  int32_t step = 0;
  int64_t start_ns = 0, end_ns = 0;
  std::array<double, kTrainingParts> ns = {};
  double transfer_ns = 0;  // of kCollective: as long as the last rank to come needed
  double waiting_ns = 0;   // the rest: until the last one was there
  double whole_ns() const { return static_cast<double>(end_ns - start_ns); }
  // Without what it waited for others.
  double own_ns() const { return whole_ns() - waiting_ns; }
  double of(TrainingPart part) const { return ns[static_cast<size_t>(part)]; }
};

struct TrainingRank {
  int32_t part = 0, rank = 0;
  std::vector<TrainingStep> steps;  // those that every rank has, in order: index k is the same step on all ranks
};

// A collective, by name: what the ranks stood still in it, a step and rank.
struct TrainingCollective {
  std::string name;
  double transfer_ns = 0, waiting_ns = 0;
  int64_t count = 0;  // of calls, a step and rank
  double bytes = 0;   // a step and rank, of calls that say it; 0: none does
};

struct TrainingTime {
  bool told = false;  // false: no training without a pipeline, or no step that every rank finished
  std::vector<TrainingRank> ranks;
  std::vector<TrainingCollective> collectives;  // by time, the longest first
  double hidden_ns = 0;                         // collectives beside the work, a step and rank
  int32_t first_left_out = -1;  // the first step, which is a warm-up, where at least four were recorded; −1: none
  size_t step_count() const { return ranks.empty() ? 0 : ranks[0].steps.size(); }
};

// O(slices log slices).
TrainingTime training_time(const Trace& trace);

}  // namespace stageline
