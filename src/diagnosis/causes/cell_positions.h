// Finds cells that take longer at the same place of every step: the first micro-batch (autotuning, lazy gathers), the
// first backward, the last micro-batch. It is part of cell_times, which computes sequence lengths without them.
//
//   step 1   ▐▐▐▐ F0 ▐▐▐▐|F1▐▐|F2▐▐|F3▐▐        micro-batch 0 is long in every step; a long sequence would be
//   step 2   ▐▐▐▐ F0 ▐▐▐▐|F1▐▐|F2▐▐|F3▐▐        another one from step to step
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "pipeline/replay/step_graph.h"
#include "pipeline/sums/course.h"

namespace stageline {

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

}  // namespace stageline
