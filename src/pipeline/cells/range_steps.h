// Finds out which rows belong to one step.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/range_rows.h"

namespace stageline {

// The rows [begin, end) that one part has in one step.
struct RowList {
  uint32_t part = 0;
  int32_t step = kUnknown;
  size_t begin = 0, end = 0;
  int32_t forwards = 0;  // how many F and F&B it has
  bool guessed = false;  // neither STEP_TIME nor a message gives the step; the list was cut by the number of forwards
  bool first = false, last = false;  // first or last list of its part, so the recording may have cut it
};

struct RowLists {
  std::vector<RowList> lists;  // ordered by part, then row
  int32_t forwards = 0;        // forwards of most lists
  int64_t guessed = 0;         // how many lists have no recorded step
  bool any_recorded = false;   // STEP_TIME or messages name at least some steps
};

// A row's step is the STEP_TIME that contains the range's start on the host, else the step that messages give. Rows
// outside of these are cut into lists where a step's number of forwards is reached. That number is the one most
// recorded steps have, or, without recorded steps, the period with which kinds and given micro-batches repeat on most
// ranks. Lists that were cut continue the numbers of the recorded ones. Without recorded steps they are numbered from
// 0, such that the last lists of all ranks are the same step. O(rows).
RowLists find_row_lists(const Trace& trace, const RangeRows& rows);

}  // namespace stageline
