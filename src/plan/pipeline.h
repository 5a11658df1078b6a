// One pipeline to be planned: an order, layers with their times and bytes, and what a split of them costs.
//
// A split gives every virtual stage a stretch of layers; a rank computes some of them again where its memory asks for
// it. Memory couples no two ranks, and no cell that takes longer lets a step end sooner, so each rank computes as
// little again as fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/schedule.h"
#include "pipeline/replay/replay.h"
#include "plan/bytes.h"

namespace stageline::plan {

// The time of one micro-batch on one layer, in nanoseconds.
struct LayerTime {
  int64_t forward = 0, input = 0, weight = 0;  // a whole backward is input + weight
  int64_t forward_comm = 0, input_comm = 0;    // of these, communication that an overlapped cell hides
  std::array<int64_t, kModules> again = {};    // computing the outputs of each module once more
};

struct Times {
  std::vector<LayerTime> kinds;
  LayerTime embedding, head;
  std::vector<int64_t> there, back;  // the time of a message from rank r to r + 1, and from r + 1 to r; empty: latency
  int64_t latency = 0;
  double overlap = 0;  // F&B ÷ (F + B) where a run measured it; 0: from the communication
};

// A set of modules that are computed again on all layers of a rank.
using Modules = uint8_t;

struct PlanProblem {
  Schedule schedule;
  std::vector<RankHeld> held;  // held_moments() of the schedule
  Times times;
  LayoutBytes bytes;
  std::vector<uint8_t> kind_of;  // for each layer
  double limit = 0;              // bytes of a rank, as `needed` counts them
  MemoryOptions memory;
  PeakBar bar;
  int32_t least_layers = 1;          // on a virtual stage
  bool full = true;                  // whole layers may be computed again
  bool all_or_none = false;          // of whole layers, all or none
  bool per_rank = true;              // each rank as many as it needs; otherwise one number for all virtual stages
  std::vector<Modules> selections;   // sets that may be computed again, without the empty one
  std::vector<int64_t> other_bytes;  // for each rank, what a run showed beyond the model; empty: nothing

  int32_t ranks() const { return static_cast<int32_t>(schedule.ranks.size()); }
  int32_t stages() const { return virtual_stage_count(schedule); }
};

// Prefix sums over layers, made once for a problem.
struct LayerSums {
  explicit LayerSums(const PlanProblem& problem);
  std::vector<int64_t> forward, input, weight;  // without embedding and head
  int64_t stage_forward(const PlanProblem& p, int32_t stage, int32_t lo, int32_t hi) const;
  int64_t stage_input(const PlanProblem& p, int32_t stage, int32_t lo, int32_t hi) const;
  int64_t stage_weight(const PlanProblem& p, int32_t stage, int32_t lo, int32_t hi) const;
};

struct Recompute {
  Modules modules = 0;  // of every layer of the stage
  int32_t full = 0;     // the first layers of the stage
  bool operator==(const Recompute&) const = default;
};

struct Plan {
  std::vector<int32_t> bounds;       // stages + 1: stage s has the layers [bounds[s], bounds[s + 1])
  std::vector<Recompute> recompute;  // for each virtual stage
  int64_t span_ns = 0;
  std::vector<int32_t> layers() const;
};

// What virtual stage `stage` has with the layers [lo, hi).
ChunkBytes chunk_bytes(const PlanProblem& problem, int32_t stage, int32_t lo, int32_t hi, const Recompute& recompute);
// The peak of a rank.
RankPeak peak_of(const PlanProblem& problem, int32_t rank, const Plan& plan);
bool fits(const PlanProblem& problem, int32_t rank, const RankPeak& peak);
// Fills `plan.recompute` of the rank's virtual stages with the least time that fits; false where nothing does.
// O(layers of the rank · moments).
bool recompute_rank(const PlanProblem& problem, const LayerSums& sums, int32_t rank, Plan& plan);
// The same for all ranks, in the way that the framework allows.
bool recompute_all(const PlanProblem& problem, const LayerSums& sums, Plan& plan);

// The time that computing again adds to a backward of the stage.
int64_t again_ns(const PlanProblem& problem, const LayerSums& sums, int32_t lo, const Recompute& recompute, int32_t hi);

struct StageTime {
  int64_t forward = 0, input = 0, weight = 0, forward_comm = 0, input_comm = 0;
  bool operator==(const StageTime&) const = default;
};
std::vector<StageTime> stage_times(const PlanProblem& problem, const LayerSums& sums, const Plan& plan);
// The replayed span of the order at these times. Errors: those of replay().
Result<int64_t> span_of(const PlanProblem& problem, const std::vector<StageTime>& times);
// The same with the start and end of every cell.
Result<std::vector<std::vector<ReplayedCell>>> cells_of(const PlanProblem& problem,
                                                        const std::vector<StageTime>& times);
// Whether weight gradients are cells of their own.
bool splits_backward(const Schedule& schedule);
// Never above the replay: for each rank what stands before its first cell, its work, the wait for the first gradient
// and what follows its last. O(cells + stages).
int64_t lower_bound_ns(const PlanProblem& problem, const std::vector<StageTime>& times);

}  // namespace stageline::plan
