// Pipeline work where nothing is annotated: from autograd's sequence numbers, sends and receives (host_work.h), and
// from whom the results went to.
//
//   rank 0   F . . F . .        a forward whose gradient is sent to nobody is of the first stage: k-th → micro-batch k
//             \.    \.          the k-th forward that rank 0 sends to rank 1 feeds the k-th forward of rank 1
//   rank 1      F .   F .       whose gradient goes back to rank 0: same micro-batch, next stage
//
// A rank that keeps a result (the bend of a V: two neighbouring stages on one rank) hands the k-th kept one to its own
// k-th forward that sends no gradient. Where peers are not recorded (gloo without record_shapes), ranks in the order
// of their numbers in a loop is a hypothesis, kept only when every count, order and path agrees with it.
// What does not fit stays kUnknown and is counted.
#pragma once

#include <vector>

#include "model/trace.h"
#include "pipeline/cells/torch_cells.h"

namespace stageline {

// Marks of compute cells of all parts, with stage and micro-batch where they follow; empty when no part has sends,
// receives and backward work. Diagnostics "cells.inferred_*" say by what evidence, and what stayed unknown.
// O(slices + work log work).
std::vector<CellMark> infer_cells(const Trace& trace, Diagnostics& diagnostics);

}  // namespace stageline
