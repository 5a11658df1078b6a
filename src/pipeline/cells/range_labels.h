// Micro-batch and chunk of rows, from what they say or from the schedule that they prove.
//
// Nothing is labelled for its position alone. A schedule counts when every rank's rows are its rows – or are after
// edits that are stated –, when no number that a row says contradicts it, and when with its labels no work begins
// before what it waits for has ended. Where several schedules pass, a row keeps the label they agree on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/cells/expected_rows.h"
#include "pipeline/cells/range_steps.h"

namespace stageline {

// Where a rank's rows of one step leave the schedule's.
struct OffSchedule {
  uint32_t part = 0;
  int32_t step = kUnknown;
  int64_t row = 0;              // of the step, from 0
  int32_t edits = 0;            // rows missing or too many, in all
  std::string expected, found;  // "F3.c1", "F3.c0&B1.c1", "B"; "" where a list has ended
  std::string why;
  uint32_t found_row = UINT32_MAX;  // of the part; UINT32_MAX where the list has ended
  // Rows that have no mark although the recording ran, and how long such rows of this step take.
  int64_t lost = 0, lost_ns = 0;
  std::string lost_first;  // "F3.c1"
};

struct RangeLabels {
  // Of the schedule that was proven, one a number of micro-batches; empty: none was.
  std::vector<RowHypothesis> made;
  // By part and row: what it is; action_count 0 where that stays unknown.
  std::vector<std::vector<ExpectedRow>> rows;
  std::vector<char> list_proven;  // by list
  std::vector<OffSchedule> off;
  int64_t labelled = 0, unknown = 0;  // compute rows
  int64_t checked = 0, wrong = 0;     // neighbours in causal order, and not
  int32_t fitting = 0;                // schedules that pass; rows have labels where all of them agree
  int32_t chunks = 1;                 // the most that one of them has
  std::string why_not;                // where no schedule was proven
  bool proven() const { return !made.empty(); }
};

// Parts must have their stages. `named`: a schedule's name that metadata give, or "". O(rows · schedules), and for
// rows off schedule O(edits · rows).
RangeLabels label_rows(const Trace& trace, const RangeRows& rows, const RowLists& lists, const std::string& named);

}  // namespace stageline
