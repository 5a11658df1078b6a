// Times of compute cells, with what is known to lengthen them divided out: micro-batches that are long on every stage,
// slow workers.
#pragma once

#include "pipeline/measure/sequence_lengths.h"
#include "pipeline/sums/course.h"

namespace stageline {

// The work of a place of the pipeline (a stage's chunk) in one replica: the mean of its micro-batches and their number.
struct WorkLevel {
  double mean = 0;
  double count = 0;  // 0: unknown
};

// Each micro-batch's work scatters by `deviation` (relative standard deviation), so by chance alone the mean of a few
// of them is off by deviation ÷ √count. Returns, for each [place][replica], what even work takes ÷ `mean`.
//
// A level is modelled as place × replica × rest. Each of the three is drawn towards what all have in common, as far as
// noise explains its scatter. This is the positive-part James-Stein estimator: with a true variance τ² and a noise
// variance e² the part τ² ÷ (τ² + e²) is kept. A stage with more layers, a slow replica and a slow rank keep their
// times, and stages that differ only by noise become equal. `shared`: all replicas of a place have the same work at the
// same time, so more of them do not add evidence. O(places · replicas).
std::vector<std::vector<double>> even_levels(const std::vector<std::vector<WorkLevel>>& work, double deviation,
                                             bool shared);

// Mean and standard deviation of the largest of `count` independent standard normal values.
struct Largest {
  double mean = 0, deviation = 1;
};
Largest largest_of_normals(size_t count);

// Finds cells that take longer at the same place of every step: the first micro-batch (autotuning, lazy gathers), the
// first backward, the last micro-batch. It is part of cell_times, which computes sequence lengths without them.
//
//   step 1   ▐▐▐▐ F0 ▐▐▐▐|F1▐▐|F2▐▐|F3▐▐        micro-batch 0 is long in every step; a long sequence would be
//   step 2   ▐▐▐▐ F0 ▐▐▐▐|F1▐▐|F2▐▐|F3▐▐        another one from step to step
struct CellPosition {
  int32_t micro_batch = 0, last_micro_batch = 0;  // neighbours that are equally long are one position
  int32_t stage = kUnknown;                       // kUnknown: on most stages
  bool every_stage = false;                       // of a position on most stages: it is on all of them
  int32_t chunk = kUnknown;
  CellKind kind = CellKind::kOther;  // kOther: several kinds
  double ratio = 1;                  // to the usual cell of the same place
  double own_ns = 0, usual_ns = 0;   // means
  double excess_error = 0;           // standard error of ratio − 1 by how much its cells scatter, relative to it
  // For a shape over all micro-batches of a step: how the time of cells follows the micro-batch's number, on all
  // stages. Its low and high are ratios to the usual cell.
  Course within;
};

struct CellPositions {
  std::vector<CellPosition> list;
  std::vector<float> factor;  // what each operation's time is divided by to make it usual; empty: all 1
  std::vector<uint8_t> of;    // for each operation 1 + index into `list`; 0, or an empty vector: no position
};

// Where all stages take more from one micro-batch of a step on, or more with each one, the position is that shape
// (`within`):
//
//     backwards   1.0 1.0 1.0 1.0 1.3 1.3 1.3 1.3     gradients are reduced beside the later ones
//
// `ratio` gives an operation's time to the usual one of its place (stage, chunk, kind), or 0 where it says nothing.
// `place` gives its place, below `places`. Expects `counts` to name at least three steps. O(operations).
CellPositions find_positions(const StepGraph& graph, const std::vector<bool>& counts,
                             const std::function<double(uint32_t op)>& ratio,
                             const std::function<uint32_t(uint32_t op)>& place, size_t places);

class CellTimes {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kKinds = 5;  // F, B, I, W, F&B
  // `counts` says for each step of the graph whether it counts. Graph and counts must outlive this object. O(operations
  // log operations). `work` is what the operations take by themselves where the graph's durations hold more than that;
  // it may be empty.
  CellTimes(const Trace& trace, const StepGraph& graph, const std::vector<bool>& counts, std::vector<double> work = {});

  struct Worker {
    int32_t dp = 0, stage = 0, part = 0;  // part: that of its first rank, where peers are one worker
  };
  const std::vector<Worker>& workers() const { return workers_; }
  // Returns true when ranks of one stage and replica are workers of their own: the work of each in a cell is known.
  bool peers_apart() const;
  // kNone: not a compute cell, or its stage is unknown.
  uint32_t worker_of(uint32_t op) const {
    return is_compute(graph_.kind[op]) && (chunks_ == 1 || graph_.chunk[op] >= 0) ? of_part_[graph_.part[op]] : kNone;
  }

  int32_t stages() const { return stages_; }
  int32_t chunks() const { return chunks_; }
  // (stage, chunk, kind) as a number below place_count().
  size_t place_count() const { return stages_ * static_cast<size_t>(chunks_) * kKinds; }
  size_t place(int32_t stage, int32_t chunk, CellKind kind) const {
    return (stage * static_cast<size_t>(chunks_) + chunk) * kKinds + static_cast<size_t>(kind);
  }
  // One half of an overlapped pair shares its device with the other half, so its place is that of an F&B: it does not
  // show what an F alone takes.
  size_t place_of(uint32_t op) const {
    const bool half = !overlapped_.empty() && overlapped_[op] != 0;
    return place(graph_.stage(op), chunks_ == 1 ? 0 : graph_.chunk[op],
                 half ? CellKind::kForwardBackward : graph_.kind[op]);
  }

  // Returns the length of an operation's micro-batch relative to the usual one of its step and replica. For an
  // overlapped pair, both micro-batches are weighted by their parts of it; 1 if it is unknown.
  double sequence_factor(uint32_t op) const { return factor_.empty() ? 1 : static_cast<double>(factor_[op]); }
  // Returns the divisor of an operation's time that turns long micro-batches into usual ones.
  double long_factor(uint32_t op) const { return without_long_.empty() ? 1 : static_cast<double>(without_long_[op]); }
  bool sequence_factor_known() const { return !factor_.empty(); }
  struct Sequences {
    int64_t all = 0, long_ones = 0;  // counts of micro-batches, each of one step and replica
    double long_factor = 0;          // mean factor of the long ones
    double correlation = 0;          // correlation of forwards with backwards over micro-batches; 0: unknown
    bool compared = false;           // there are enough of them to know whether stages agree
    bool on_all_stages = false;      // forwards and backwards go together, and stages agree on which are long
  };
  const Sequences& sequences() const { return sequences_; }
  // Factor for an operation's time that makes all micro-batches of its step equally long, over all replicas.
  double even_factor(uint32_t op) const { return even_.empty() ? 1 : static_cast<double>(even_[op]); }
  // Cells that are long at the same place of every step.
  const CellPositions& positions() const { return positions_; }
  // Work that varies with the data from stage to stage, as when experts get unequal shares of the tokens. Forward and
  // backward of a micro-batch are then long together on one stage, and not on other stages.
  struct Routing {
    double correlation = 0, deviation = 0;  // of forwards with backwards; relative standard deviation of a cell's work
    int64_t cells = 0;
    // True where all replicas have the same work at the same time, as where experts are spread over them and each waits
    // for the one with most tokens. Even work is then less than any replica is seen to take, and has to be estimated.
    bool shared = false;
    // For each operation, its time ÷ its time with an even distribution of work; empty: work does not vary. With
    // `own_factor` each rank keeps the mean of its own work, though these means differ randomly too.
    std::vector<float> factor, own_factor;
    bool known() const { return !factor.empty(); }
  };
  const Routing& routing() const { return routing_; }
  static constexpr double kLong = 1.1;  // minimum factor of a long sequence

  // Divides the times of a worker's cells by `factor` in all answers from now on.
  void even_out(size_t worker, double factor) { worker_factor_[worker] *= factor; }
  // Marks a worker that is slow in some steps only: no single factor evens it out, so its stage's course is measured
  // without it.
  void leave_out(size_t worker) { left_out_[worker] = 1; }
  bool left_out(uint32_t op) const { return left_out_[worker_of(op)] != 0; }
  double time_ns(uint32_t op) const {
    return work_ns(op) / (position_factor(op) * sequence_factor(op) * worker_factor_[worker_of(op)]);
  }

  // Mean time for each place; NaN where it has no cells. O(operations).
  std::vector<double> place_means() const;
  // For each [worker][step of the graph]: the sum of its operations' times ÷ the sum of what their places usually take;
  // NaN where it has none, and in steps that do not count unless `all` is set. O(operations).
  std::vector<std::vector<double>> worker_loads(bool all = false) const;
  struct Scatter {
    double error = 0;
    int64_t samples = 0;
  };
  // Returns for each of `keys` the standard error of its cells' time ÷ the usual time of their places. The error comes
  // from the scatter of the cells, so few steps are enough. The cells that stages or replicas of a key have at one
  // place of the order are one sample: they may be long together. What all cells of a step share is left out. key_of
  // gives a key or kNone. O(operations).
  std::vector<Scatter> scatter(size_t keys, const std::function<uint32_t(uint32_t)>& key_of) const;

 private:
  double work_ns(uint32_t op) const { return work_.empty() ? graph_.dur_ns[op] : work_[op]; }
  double position_factor(uint32_t op) const {
    return positions_.factor.empty() ? 1 : static_cast<double>(positions_.factor[op]);
  }
  void find_workers();
  void find_sequences(const std::vector<uint32_t>& partner, const std::vector<double>& usual);
  bool stages_agree(const SequenceLengths& lengths, const std::function<double(uint32_t)>& ratio) const;
  struct RoutingStep;
  RoutingStep routing_of(const GraphStep& step, const std::vector<double>& usual, std::vector<float>& factor) const;
  void find_routing(const std::vector<double>& usual);
  void deal_evenly(std::vector<float> ratio, const std::vector<double>& usual);

  const StepGraph& graph_;
  const std::vector<bool>& counts_;
  const std::vector<double> work_;
  int32_t stages_ = 1, chunks_ = 1;
  std::vector<Worker> workers_;
  std::vector<uint32_t> of_part_;    // for each part its worker, or kNone
  std::vector<uint8_t> overlapped_;  // for each operation whether it is half of a pair; empty: none is
  std::vector<float> factor_, without_long_, even_;
  std::vector<double> worker_factor_;
  std::vector<uint8_t> left_out_;  // for each worker
  Sequences sequences_;
  CellPositions positions_;
  Routing routing_;
};

}  // namespace stageline
