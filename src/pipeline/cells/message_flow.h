// Whether messages flow as in a pipeline, where names that are in use elsewhere too are all there is.
#pragma once

#include <vector>

#include "model/trace.h"
#include "pipeline/cells/cell_mark.h"

namespace stageline {

// A send carries the result of the work that began last before it. In a pipeline there is an end: a rank whose forwards
// send and whose backwards do not (the first stage), or the other way round (the last one), and both directions are
// sent by somebody; without backward work, one rank sends and another does not. Rings of attention, exchanges between
// pairs and gradients send after both on every rank. False too where that cannot be told: one middle rank alone,
// several chunks a rank. `marks`: by part, any order within. O(slices + marks log marks).
bool sends_flow(const Trace& trace, const std::vector<CellMark>& marks);

}  // namespace stageline
