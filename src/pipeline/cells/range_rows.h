// Rows of pipeline work from ranges (mstx, NVTX) that say what they are and have a device side.
//
//   range of the host ──partner──▶ interval on the device ──▶ RangeRow, ordered by start on the device
//
// The host only says what a row is; when it ran, the device says. A row may be one of a pipeline's four kinds (F, B,
// F&B, W) or, by rules of the user's, anything else that is a cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/cell_rules.h"

namespace stageline {

struct RangeRow {
  uint32_t slice = kNoSlice;  // the range on the host, for click-through
  int64_t start_ns = 0, end_ns = 0;
  int64_t host_ns = 0;  // start on the host: what STEP_TIME knows
  CellKind kind = CellKind::kOther;
  bool whole = true;  // kind is as said; false: a backward whose W may run apart, so that it may be I
  int32_t micro_batch = kUnknown, chunk = kUnknown, stage = kUnknown, step = kUnknown;  // as said
  int32_t other_micro_batch = kUnknown, other_chunk = kUnknown;                         // of F&B: of its backward
};

struct RangeRows {
  std::vector<std::vector<RangeRow>> parts;  // by part, then start on the device
  std::string set, example;                  // of rules; "": nothing is pipeline work
  int64_t names = 0, ranges = 0;             // that are pipeline work
  int64_t without_device = 0, nested = 0, empty_pops = 0, out_of_range = 0;
  int32_t empty_pop_part = kUnknown;  // the first part with an empty pop
};

// Ranges of domain "communication" are none. Rules of the user's come first, then what Megatron and MindSpeed call
// their ranges, then the other sets. Of nested ranges of pipeline work the outermost counts. A WeightGradStore.pop
// that found its store empty (shorter than 5 µs and 2 % of the median backward, or 2 % of the median pop, right after
// a backward) is dropped and counted. O(ranges log ranges + names · rules).
RangeRows find_range_rows(const Trace& trace, const CellRules& rules);

}  // namespace stageline
