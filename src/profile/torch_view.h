// Rows of profiler traces as analyses look at them, one rank at a time, in one of two modes:
//
//   default   every slice, exact nanoseconds; device work by category; steps by the host's own
//             ProfilerStep rows, device work through its launch
//   hta       what Holistic Trace Analysis holds after loading: microsecond rounding (§ "nanosecond
//             traces"), partner by file order, iteration from any ProfilerStep row, its drop of the last
//             step with duplicated rows. Definitions: docs/analyses/hta-loading.md.
//
// Times of both modes are int64 ns counted from the run's earliest start, so one analysis serves both.
#pragma once

#include "base/result.h"
#include "model/trace.h"
#include "profile/torch_rows.h"

namespace stageline {

// Errors: kBadInput when the trace has no profiler slices, or none of the ranks asked for.
Result<TorchRun> make_torch_run(const Trace& trace, const TorchOptions& options);
// O(slices of the part); the caller drops it when done, so memory is bounded by the ranks at work.
TorchRank torch_rank(const TorchRun& run, size_t part);

// A time of a row as HTA prints it: microseconds, from the run's zero.
inline double to_us(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

}  // namespace stageline
