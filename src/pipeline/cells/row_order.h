// Checks whether the labels put on rows can be true: no work begins before what it waits for has ended.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/expected_rows.h"
#include "pipeline/cells/range_steps.h"

namespace stageline {

// One direction of one labelled row, as a stop on the way of its micro-batch.
struct RowStop {
  uint64_t way = 0;    // the pipeline and the step
  uint64_t place = 0;  // the direction, micro-batch and virtual stage
  int64_t start_ns = 0, end_ns = 0;
  uint32_t part = 0, row = 0;
};

// Returns the pipeline of each part: parts with the same (dp, position within the stage), one for each stage. kUnknown
// where the stage is.
std::vector<int32_t> pipeline_of_parts(const Trace& trace);

// The clocks of two devices of one machine differ by at most this.
inline constexpr int64_t kSameHostSlackNs = 100'000;

class RowOrder {
 public:
  RowOrder(const Trace& trace, const RangeRows& rows, const Schedule& shape)
      : trace_(trace), rows_(rows), shape_(shape), pipeline_(pipeline_of_parts(trace)) {}

  // Adds the stops of a labelled row. The constructor's `shape` is the schedule whose layout of chunks is used.
  void add(const RowList& list, uint32_t row, const ExpectedRow& label);
  void finish();

  struct Verdict {
    int64_t checked = 0, wrong = 0;
    std::vector<std::pair<uint32_t, uint32_t>> rows;  // (part, row) of the pairs that contradict the order
  };
  // Checks every pair of neighbours on the way of a micro-batch. On one clock, the second must not begin before the
  // first ends. Between two clocks there must be some offset with which all pairs of a step are in order. O(stops).
  Verdict check() const;

  // Returns how many neighbours on the same clock contradict this label for this row, and how many there are.
  std::pair<int, int> against(const RowList& list, uint32_t row, const ExpectedRow& label) const;

  const std::vector<RowStop>& stops() const { return stops_; }
  int32_t vstage_count() const { return virtual_stage_count(shape_); }

 private:
  void stops_of(const RowList& list, uint32_t row, const ExpectedRow& label, std::vector<RowStop>& out) const;
  const RowStop* find(uint64_t way, uint64_t place) const;

  const Trace& trace_;
  const RangeRows& rows_;
  const Schedule& shape_;
  std::vector<int32_t> pipeline_;
  std::vector<RowStop> stops_;
};

}  // namespace stageline
