// Which rows of ranges belong to one step.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/range_rows.h"

namespace stageline {

// Rows [begin, end) of one part in one step.
struct RowList {
  uint32_t part = 0;
  int32_t step = kUnknown;
  size_t begin = 0, end = 0;
  int32_t forwards = 0;              // F and F&B
  bool guessed = false;              // no STEP_TIME and no message says the step: cut by the number of forwards
  bool first = false, last = false;  // of the part: where the window of the recording may have cut it
};

struct RowLists {
  std::vector<RowList> lists;  // by part, then row
  int32_t forwards = 0;        // of most lists
  int64_t guessed = 0;         // lists without a recorded step
  bool any_recorded = false;   // STEP_TIME or messages name some steps
};

// Steps by STEP_TIME (the range's host time lies in it), else by what messages say. What lies outside is cut where a
// step's number of forwards is full: the number that most recorded steps have, else the period with which kinds and
// said micro-batches of most ranks repeat. Cut lists are numbered on from the recorded ones; without any from 0, the
// last list of every rank being the same step. O(rows).
RowLists find_row_lists(const Trace& trace, const RangeRows& rows);

}  // namespace stageline
