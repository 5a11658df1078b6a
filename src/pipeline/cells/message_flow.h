// Decides whether messages flow as in a pipeline. It is asked where the only names found are in use outside of
// pipelines too.
#pragma once

#include <vector>

#include "model/trace.h"
#include "pipeline/cells/cell_mark.h"

namespace stageline {

// A send carries the result of the work that began last before it. A pipeline has ends: on the first stage forwards
// send and backwards do not, on the last stage the other way round, and over all ranks both directions are sent.
// Without backward work it is enough that one rank sends and another does not. Rings of attention, exchanges between
// pairs and reductions of gradients send after both directions on every rank. Also returns false when this cannot be
// determined: for one middle rank alone, or several chunks per rank. `marks`: part after part, in any order within.
// O(slices + marks log marks).
bool sends_flow(const Trace& trace, const std::vector<CellMark>& marks);

}  // namespace stageline
