// An area of the timeline, summed up by name and kind.
#pragma once

#include "server/http/query.h"
#include "server/timeline/timeline.h"

namespace stageline {

struct SelectionTotal {
  StringId name = 0;
  uint8_t kind = 0;
  uint64_t count = 0;    // slices that touch the area
  int64_t sum_ns = 0;    // of their time inside the area
  int64_t self_ns = 0;   // sum_ns less the time of the slices directly inside them
  int64_t whole_ns = 0;  // of their whole durations
  // The least, the two quantiles and the greatest of whole durations; quantiles are −1 where they were not asked for.
  int64_t min_ns = 0, median_ns = 0, p95_ns = 0, max_ns = 0;
};

struct Selection {
  std::vector<SelectionTotal> totals;  // the largest sum first; at most `limit`
  size_t left_out = 0;                 // number of further totals
  uint64_t slice_count = 0;            // over all totals, also those left out
  bool exact = true;  // quantiles are exact; false: they come from bins that are 1/32 of an octave wide
};

// Where `lanes` are whole groups (AreaSums): O(blocks of sums in the area + slices at its edges), parallel. For
// other lanes also O(slices that start in the area). Quantiles are exact up to kExactQuantiles slices.
inline constexpr size_t kExactQuantiles = 1'000'000;
Selection select_area(const Timeline& timeline, const std::vector<uint32_t>& lanes, const TimeWindow& window,
                      size_t limit);

// The answer to /api/select. Errors: kUsage.
Result<std::string> select_answer(const Timeline& timeline, const Query& query);

// The value at `share` (0 … 1) of `values`, by nearest rank; reorders `values`.
int64_t quantile(std::vector<int64_t>& values, double share);

}  // namespace stageline
