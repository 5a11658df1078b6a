// Finds rows of pipeline work: ranges (mstx, NVTX) that say what they are and have a device side.
//
//   range of the host ──partner──▶ interval on the device ──▶ RangeRow, ordered by start on the device
//
// The range on the host only says what the row is; its times are those on the device. A row has one of a pipeline's
// four kinds (F, B, F&B, W) or, by the user's own rules, any other kind that makes a cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/cell_rules.h"

namespace stageline {

struct RangeRow {
  uint32_t slice = kNoSlice;  // the range on the host; a click on the cell leads there
  int64_t start_ns = 0, end_ns = 0;
  int64_t host_ns = 0;  // start on the host, which STEP_TIME refers to
  CellKind kind = CellKind::kOther;
  bool whole = true;  // false for a backward whose W may run apart, so that it may be an I
  // As the range says; kUnknown when it does not.
  int32_t micro_batch = kUnknown, chunk = kUnknown, stage = kUnknown, step = kUnknown;
  int32_t other_micro_batch = kUnknown, other_chunk = kUnknown;  // for F&B: the same of its backward
};

struct RangeRows {
  std::vector<std::vector<RangeRow>> parts;  // for each part, in order of start on the device
  std::string set, example;  // the set of rules that matched, and a name that did; "" when nothing is pipeline work
  int64_t names = 0, ranges = 0;  // how many names and ranges are pipeline work
  int64_t without_device = 0, nested = 0, empty_pops = 0, out_of_range = 0;
  int32_t empty_pop_part = kUnknown;  // the first part with an empty pop
  // Where the names of forwards or of backwards are missing: how many names and ranges no rule knows, and one of them.
  int64_t unknown_names = 0, unknown_ranges = 0;
  std::string unknown_example;
};

// Ranges of the domain "communication" are not rows. The user's rules come first, then the names that Megatron and
// MindSpeed give their ranges, then the other sets. A set that covers forwards and backwards comes before those that
// cover one of them. Rules for any name are used only if the job is `staged`, a pipeline by other evidence. Of nested
// ranges of pipeline work the outermost counts. A WeightGradStore.pop whose store was empty is dropped and counted.
// Such a pop follows a backward at once. It is shorter than 5 µs and than 2 % of the median backward, or shorter than 2
// % of the median pop. O(ranges log ranges + names · rules).
RangeRows find_range_rows(const Trace& trace, const CellRules& rules, bool staged = false);

}  // namespace stageline
