// An order to be replayed: what each cell is, waits for and sends. other_order.h compiles and replays it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/schedule.h"
#include "pipeline/replay/graph_ops.h"

namespace stageline {

// An order compiled for replays: cells in an order in which each comes after what it waits for.
struct OrderPlan {
  struct Cell {
    uint32_t slot[2];  // (stage · chunks + chunk) · micro-batches + micro-batch; of a lone action twice the same
    uint8_t kind[2];   // 0 F, 1 B, 2 I, 3 W
    uint8_t count;     // actions
    int32_t stage;
    uint32_t before;    // cell of the same rank; kNoCell
    uint32_t after[2];  // producers; kNoCell
    int32_t edge[2];    // 2 · receiving stage, + 1 backwards: a message between ranks; -1: none
  };
  Schedule schedule;  // its ranks' lists are emptied
  std::vector<Cell> cells;
  std::vector<double> held;  // by rank: most activations held at once, in those of one stage of one micro-batch
  double most_held() const { return held.empty() ? 0 : *std::max_element(held.begin(), held.end()); }
};

}  // namespace stageline
