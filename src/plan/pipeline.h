// One pipeline to be planned: an order, layers with their times and bytes, and what a split of them costs.
//
// A split gives every virtual stage a stretch of layers; a rank computes some of them again where its memory asks for
// it. Memory couples no two ranks, and no cell that takes longer lets a step end sooner, so each rank computes as
// little again as fits.
#pragma once

#include "pipeline/replay/replay.h"
#include "plan/bytes.h"

namespace stageline::plan {

// The time of one micro-batch on one layer or on several, in nanoseconds.
struct LayerTime {
  int64_t forward = 0, input = 0, weight = 0;  // a whole backward is input + weight
  int64_t forward_comm = 0, input_comm = 0;    // of these, communication that an overlapped cell hides
  std::array<int64_t, kModules> again = {};    // computing the outputs of each module once more
  int64_t sum() const { return forward + input + weight; }
  LayerTime& operator+=(const LayerTime& other);
  LayerTime operator-(const LayerTime& other) const;
};

// The kind of each layer, and how many of a kind any stretch of layers has.
class Layers {
 public:
  Layers() = default;
  Layers(const std::vector<uint8_t>& kinds);  // NOLINT(google-explicit-constructor)
  int32_t size() const { return static_cast<int32_t>(kinds_.size()); }
  uint8_t operator[](int32_t layer) const { return kinds_[layer]; }
  int32_t count(size_t kind, int32_t lo, int32_t hi) const {
    return kind < width_ ? before_[hi * width_ + kind] - before_[lo * width_ + kind] : 0;
  }
  auto begin() const { return kinds_.begin(); }
  auto end() const { return kinds_.end(); }

 private:
  std::vector<uint8_t> kinds_;
  size_t width_ = 0;             // kinds
  std::vector<int32_t> before_;  // for each layer and kind, how many stand before it
};

struct Times {
  std::vector<LayerTime> kinds;
  LayerTime embedding, head;
  // For each virtual stage how many times as long its layers take (F, B or I, W), at least 1; empty: 1
  std::vector<std::array<double, 3>> slow;
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
  Layers kind_of;
  double limit = 0;  // bytes of a rank, as `needed` counts them
  MemoryOptions memory;
  PeakBar bar;
  int32_t min_layers = 1;            // on a virtual stage
  bool full = true;                  // whole layers may be computed again
  bool all_or_none = false;          // of whole layers, all or none
  bool per_rank = true;              // each rank as many as it needs; otherwise one number for all virtual stages
  std::vector<Modules> selections;   // sets that may be computed again, without the empty one
  std::vector<int64_t> other_bytes;  // for each rank, what a run showed beyond the model; empty: nothing

  int32_t ranks() const { return static_cast<int32_t>(schedule.ranks.size()); }
  int32_t stages() const { return virtual_stage_count(schedule); }
};
// The layers and bytes of a model in this order. Times, and what may be computed again, are for the caller to set.
PlanProblem problem_of(Schedule schedule, const Model& model, const Layout& layout, const MemoryOptions& memory);

// Prefix sums over layers, made once for a problem.
struct LayerSums {
  explicit LayerSums(const PlanProblem& problem);
  std::vector<LayerTime> before;  // of the layers before each, without embedding and head
  LayerTime stage(const PlanProblem& p, int32_t stage, int32_t lo, int32_t hi) const;  // with them
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
// The plan whose virtual stages have this many layers each, of which none is computed again.
Plan plan_of(const std::vector<int32_t>& layers);
// Layers spread evenly over the virtual stages, one more on the first ones, as frameworks do it.
std::vector<int32_t> even_layers(int64_t layers, int32_t stages);

// Returns the bytes of virtual stage `stage` with the layers [lo, hi). O(kinds).
ChunkBytes chunk_bytes(const PlanProblem& problem, int32_t stage, int32_t lo, int32_t hi, const Recompute& recompute);
// Returns the peak of a rank.
RankPeak peak_of(const PlanProblem& problem, int32_t rank, const Plan& plan);
bool fits(const PlanProblem& problem, const RankPeak& peak);

// A stretch of layers on one virtual stage.
struct ChunkPart {
  int32_t stage = 0, lo = 0, hi = 0;
  Recompute recompute;
  int32_t layers() const { return hi - lo; }
};
std::vector<ChunkPart> parts_of(const PlanProblem& problem, int32_t rank, const Plan& plan);
RankPeak peak_of(const PlanProblem& problem, int32_t rank, std::span<const ChunkPart> parts);
// The time that computing again adds to a backward of the stage.
int64_t again_ns(const LayerSums& sums, int32_t lo, const Recompute& recompute, int32_t hi);

// The time of a cell where virtual stages take `times`.
int64_t cell_ns(const PlanProblem& problem, const std::vector<LayerTime>& times, int32_t rank,
                const ScheduleCell& cell);
std::vector<LayerTime> stage_times(const PlanProblem& problem, const LayerSums& sums, const Plan& plan);
// The replayed span of the order at these times. Errors: those of replay().
Result<int64_t> span_of(const PlanProblem& problem, const std::vector<LayerTime>& times);
// Returns the same for a search, with the problem's schedule prepared.
int64_t span_of(const PlanProblem& problem, const RepeatedReplay& replay, const std::vector<LayerTime>& times);
// Returns the same with the start and end of every cell.
Result<std::vector<std::vector<ReplayedCell>>> cells_of(const PlanProblem& problem,
                                                        const std::vector<LayerTime>& times);
int64_t span_of(const std::vector<std::vector<ReplayedCell>>& cells);
// Returns true when weight gradients are cells of their own.
bool splits_backward(const Schedule& schedule);

}  // namespace stageline::plan
