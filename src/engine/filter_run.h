// Applies --ranks, --steps and --range to a run.
#pragma once

#include "model/trace.h"

namespace stageline {

struct TimeRange {
  int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;  // relative to the first cell
};

struct RunFilter {
  std::vector<int32_t> ranks;  // sorted; when empty, all are kept
  int64_t first_step = INT64_MIN, last_step = INT64_MAX;
  std::optional<TimeRange> range;
};

// With `profiled` the trace has profiler slices, perhaps with cells. Then its parts and slices stay, because times
// count from the start of the whole run, and trace.slice_filter restricts analyses. Otherwise parts and cells are
// removed. Errors: kBadInput when nothing is left; it lists what exists.
Status filter_run(Trace& trace, const RunFilter& filter, bool profiled, const std::string& path);

// For profiled traces, whose parts all stay. has_other_ranks() says whether there are parts that --ranks left out;
// drop_other_ranks() removes them, for outputs that draw every part there is.
bool has_other_ranks(const Trace& trace);
void drop_other_ranks(Trace& trace);

}  // namespace stageline
