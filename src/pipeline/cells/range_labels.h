// Finds micro-batch and chunk of rows, from what the rows say or from a schedule that they prove.
//
// No row is labelled for its position alone. A schedule is proven when three conditions hold. Every rank's rows are
// the schedule's, or become so by few edits that are reported. No number that a row gives contradicts it. With its
// labels no work starts before its input is ready. Where several schedules are proven, a row gets the label they agree
// on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/cells/expected_rows.h"
#include "pipeline/cells/range_steps.h"

namespace stageline {

// Where the rows of one rank in one step leave the schedule.
struct OffSchedule {
  uint32_t part = 0;
  int32_t step = kUnknown;
  int64_t row = 0;              // row of the step, from 0
  int32_t edits = 0;            // rows missing plus rows too many
  std::string expected, found;  // "F3.c1", "F3.c0&B1.c1", "B"; "" where that list has ended
  Text why;
  uint32_t found_row = UINT32_MAX;  // row of the part; UINT32_MAX where the list has ended
  // Rows that have no mark although the recording was running, and how long they take by the other rows of their kind
  // in this step.
  int64_t lost = 0, lost_ns = 0;
  std::string lost_first;  // the first of them, "F3.c1"
};

struct RangeLabels {
  // The proven schedule, once for each number of micro-batches that steps have; empty when none was proven.
  std::vector<RowHypothesis> made;
  // The meaning of each row of each part; action_count is 0 if it stays unknown.
  std::vector<std::vector<ExpectedRow>> rows;
  std::vector<char> list_proven;  // for each list
  std::vector<OffSchedule> off;
  int64_t labelled = 0, unknown = 0;  // counts of compute rows
  // Pairs of neighbours in causal order that were checked, and those that contradict it.
  int64_t checked = 0, wrong = 0;
  int32_t fitting = 0;  // how many schedules are proven; rows have labels where all of them agree
  int32_t chunks = 1;   // the most chunks that one of them has
  Text why_not;         // the reason, where no schedule was proven
  bool proven() const { return !made.empty(); }
};

// Expects that parts have their stages. `named` is the schedule that metadata name, or "". O(rows · schedules), and
// O(edits · rows) for rows that leave the schedule.
RangeLabels label_rows(const Trace& trace, const RangeRows& rows, const RowLists& lists, const std::string& named);

}  // namespace stageline
