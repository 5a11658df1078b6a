// Marks of messages that no rule names: sends and receives of a host without a device, by the work around them.
#pragma once

#include <vector>

#include "pipeline/cells/cell_mark.h"

namespace stageline {

// Returns one mark for each send and receive of the marked forwards and backwards. A send carries the work before it, a
// receive brings the input of the work after it, and one inside work belongs to that work. If work has several (other
// tensors, shapes), the first send and the last receive count. `marks` are ordered by part. Nothing is returned for
// ranks with device work, or where marks hold messages. O(slices + marks log marks).
std::vector<CellMark> message_marks(const Trace& trace, const std::vector<CellMark>& marks);

}  // namespace stageline
