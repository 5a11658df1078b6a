// Makes message cells of the sends and receives of a trace whose rows of work have labels.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/row_order.h"

namespace stageline {

struct RangeMessages {
  std::vector<Cell> cells;
  int64_t messages = 0;    // how many sends and receives were recorded
  int64_t unknown = 0;     // how many of them became no cell, as peer or direction is not known
  int64_t unlabelled = 0;  // how many cells have no micro-batch
};

// Every send carries the result of a labelled row, and every receive brings what a labelled row waits for. Between two
// ranks, messages arrive in the order in which the receiver needs them, so the k-th message of a step is the k-th
// needed. Counting starts from the step's end where the recording lost its first messages. A pair must be possible in
// time: no receive ends after the work that waits for it begins, and no send begins before its result is made. If
// operations do not name their peer, the first and the last stage have only one neighbour. Elsewhere a pair is made
// only if no other order explains the operations as well. For batchSendRecv, a result leaves with the first operation
// after it, and an input comes with the last operation before its work. If rows have no labels and ranks have one
// chunk, the peer's stage gives the direction. `order` must be finished. O(messages log messages + stops).
RangeMessages find_range_messages(const Trace& trace, const RowLists& lists, const RangeRows& rows,
                                  const RowOrder& order, int32_t chunks);

}  // namespace stageline
