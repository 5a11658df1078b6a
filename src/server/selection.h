// An area of the timeline, summed up by name and kind.
#pragma once

#include <string>
#include <vector>

#include "server/query.h"
#include "server/timeline.h"

namespace stageline {

struct SelectionTotal {
  StringId name = 0;
  uint8_t kind = 0;
  uint64_t count = 0;                                         // slices that touch the area
  int64_t sum_ns = 0;                                         // of their time inside it
  int64_t self_ns = 0;                                        // the same less that of the slices directly inside them
  int64_t whole_ns = 0;                                       // of their whole durations
  int64_t min_ns = 0, median_ns = 0, p95_ns = 0, max_ns = 0;  // of whole durations; quantiles −1: not asked
};

struct Selection {
  std::vector<SelectionTotal> totals;  // by sum, the largest first; at most `limit`
  size_t left_out = 0;                 // names beyond
  uint64_t slice_count = 0;            // of all
  bool exact = true;                   // quantiles; else from bins 1/32 of an octave wide
};

// O(blocks of sums in the area + slices at its edges), parallel, where the lanes are whole groups (area_sums.h); of
// others slices that start in it as well. Quantiles are exact up to kExactQuantiles slices.
inline constexpr size_t kExactQuantiles = 1'000'000;
Selection select_area(const Timeline& timeline, const std::vector<uint32_t>& lanes, const TimeWindow& window,
                      size_t limit);

// The answer to /api/select. Errors: kUsage.
Result<std::string> select_answer(const Timeline& timeline, const Query& query);

// The value at `share` (0 … 1) of the way through `values`, which are put out of order: nearest rank.
int64_t quantile(std::vector<int64_t>& values, double share);

}  // namespace stageline
