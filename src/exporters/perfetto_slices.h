// Writes the slices of a profiler trace in Perfetto's own format. It is called by perfetto.cc when there are no
// pipeline cells, and also to write the slices in addition to the cells.
#pragma once

#include <cstdint>

#include "exporters/export_sink.h"
#include "model/trace.h"

namespace stageline {

// The numbers that a file has given away already, so that the tracks, sequences and arrows of both writers get
// different ones.
struct PerfettoNumbers {
  uint64_t pid = 0, tid = 0, sequence = 1, flow = 0, sibling = 0;
  int64_t first_ns = INT64_MAX;  // time at which the file begins
  bool any = false;
};
// Writes one process for each rank and one thread for each lane, with names and categories. Arrows lead from launches
// to their last device work, and both have a number, "correlation". Slices that overlap on a lane without nesting go to
// further threads, at most kMaxRowsPerLane for each lane. Other arguments are not written; they stay in the source. The
// memory used is that of one lane's slices that did not nest. O(slices), times the number of threads of a lane.
void write_profiler_slices(const Trace& trace, ExportSink& sink, const PerfettoNumbers& taken = {});

// Returns true when a trace has slices of a profiler besides those that its cells were read from.
bool has_profiler_slices(const Trace& trace);
// Returns the first start of any slice, or INT64_MAX when there are no slices.
int64_t first_slice_ns(const Trace& trace);

}  // namespace stageline
