// Estimates how long every micro-batch is compared with the usual one of its step and replica, from the cells that it
// runs through. A part of cell_times.
//
//   alone           ▐▐▐ a ▐▐▐            takes length(a) × what cells of its place usually take
//   overlapped      ▐▐ F a & B b ▐▐      takes (w · length(a) + (1 − w) · length(b)) × …, w: the forwards' part of it
//
// Lengths and w are fitted in turn: medians over the cells of a micro-batch, then least squares over the pairs.
#pragma once

#include "pipeline/measure/op_values.h"

namespace stageline {

struct SequenceLengths {
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Batch {  // a micro-batch of a step and replica
    uint32_t step = 0;
    double length = 0;  // its cells' time ÷ what their places usually take; NaN with too few cells
    double factor = 1;  // length ÷ the median one of its step and replica; 1 where it is not known
    double even = 0;    // mean length of the step's micro-batches, over all replicas
  };
  std::vector<Batch> batches;
  std::vector<uint32_t> batch_of;  // for each operation, once find_batches() was called; kNone: no micro-batch
  // Times of micro-batches in steps that count, relative to the median one.
  std::vector<std::pair<double, double>> forward_backward;
  double forward_part = 0.5;    // w
  RawValues<uint32_t> ops;      // sorted by micro-batch
  std::vector<uint32_t> begin;  // for each micro-batch its first index in ops, and at last the end

  void find_batches(const StepGraph& graph);
};

// `ratio` gives for an operation its time ÷ what its place usually takes, or 0 where it says nothing; it is called from
// several threads. `partner` gives for each operation the other half of its overlapped pair, of the same step, or
// kNone; it may be empty. `long_from` is the ratio of two lengths from which a pair says something of w. O(operations
// log operations), steps in parallel.
SequenceLengths sequence_lengths(const StepGraph& graph, const std::vector<bool>& counts,
                                 const std::function<double(uint32_t op)>& ratio, const std::vector<uint32_t>& partner,
                                 double long_from);

}  // namespace stageline
