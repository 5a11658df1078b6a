// What --ranks, --steps and --range leave of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace stageline {

struct TimeRange {
  int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;  // relative to the first cell
};

struct RunFilter {
  std::vector<int32_t> ranks;  // sorted; empty keeps all
  int64_t first_step = INT64_MIN, last_step = INT64_MAX;
  std::optional<TimeRange> range;
};

// `profiled`: the trace has profiler slices, maybe beside cells. Its parts and slices stay, for times count from the
// whole run's start; trace.slice_filter says what analyses look at. Otherwise parts and cells go. Errors: kBadInput
// when nothing is left, saying what there is.
Status filter_run(Trace& trace, const RunFilter& filter, bool profiled, const std::string& path);

// Of a profiled trace, whose parts all stay: are there parts that --ranks left out? And takes them away, for outputs that
// draw every part there is.
bool has_other_ranks(const Trace& trace);
void drop_other_ranks(Trace& trace);

}  // namespace stageline
