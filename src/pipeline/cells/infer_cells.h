// Infers pipeline work where nothing is annotated, from autograd's sequence numbers, sends and receives (host_work.h),
// and from the ranks to which results were sent.
//
//   rank 0   F . . F . .        sends its gradients to nobody, so it is the first stage: its k-th F is micro-batch k
//             \.    \.          the k-th forward that rank 0 sends to rank 1 feeds the k-th forward of rank 1
//   rank 1      F .   F .       whose gradient goes back to rank 0: same micro-batch, next stage
//
// At the bend of a V, two neighbouring stages are on one rank, and a result is kept instead of sent. There the
// k-th kept result feeds the k-th forward of the same rank that sends no gradient. If peers are not recorded
// (gloo without record_shapes), the ranks are assumed to form a ring in the order of their numbers. This is
// kept only if every count, order and path agrees with it. Work that does not fit stays kUnknown and is
// counted.
#pragma once

#include <vector>

#include "model/trace.h"
#include "pipeline/cells/torch_cells.h"

namespace stageline {

// Returns marks of the compute cells of all parts, with stage and micro-batch where these follow. The result is empty
// when no part has sends, receives and backward work. Diagnostics "cells.inferred_*" say what the marks rest on and
// what stayed unknown. O(slices + work log work).
std::vector<CellMark> infer_cells(const Trace& trace, Diagnostics& diagnostics);

}  // namespace stageline
