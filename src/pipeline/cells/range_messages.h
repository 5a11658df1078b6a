// Sends and receives of a trace whose rows of work are labelled, as message cells.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/row_order.h"

namespace stageline {

struct RangeMessages {
  std::vector<Cell> cells;
  int64_t messages = 0;    // sends and receives that were recorded
  int64_t unknown = 0;     // of them: no peer or direction, so no cell
  int64_t unlabelled = 0;  // cells whose micro-batch stays unknown
};

// Every send carries the result of a labelled row, every receive what one waits for. Between two ranks messages arrive
// in the order in which the receiver needs them; the k-th of a step is the k-th needed, counted from the step's end
// where a recording lost its first ones, as long as no receive ends after the work that waits for it begins and no
// send begins before what it carries is made. Where operations do not say with whom they were, the ends of a pipeline
// have one neighbour, and elsewhere those are matched that no other order explains. batchSendRecv: a result leaves with
// the first operation after it, an input comes with the last one before the work. Where rows have no labels and ranks
// one chunk, the peer's stage tells the direction. `order`: finished. O(messages log messages + stops).
RangeMessages find_range_messages(const Trace& trace, const RowLists& lists, const RangeRows& rows,
                                  const RowOrder& order, int32_t chunks);

}  // namespace stageline
