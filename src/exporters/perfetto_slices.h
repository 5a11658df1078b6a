// Slices of a profiler trace as Perfetto's own format: what perfetto.cc writes where there are no pipeline cells, and
// beside them where there are.
#pragma once

#include <cstdint>

#include "exporters/export_sink.h"
#include "model/trace.h"

namespace stageline {

// One process per rank, one thread per lane, and further ones for slices that overlap there without nesting, at most
// kMaxRowsPerLane of them; names, categories, and arrows from launches to their last device work. Arguments stay in the
// source. Streams: memory is that of one lane's slices that did not nest. O(slices), times the threads of a lane.
// Numbers that a file has given away already, so that tracks, sequences and arrows of both stay apart.
struct PerfettoNumbers {
  uint64_t pid = 0, tid = 0, sequence = 1, flow = 0, sibling = 0;
  int64_t first_ns = INT64_MAX;  // what the file begins with
  bool any = false;
};
void write_profiler_slices(const Trace& trace, ExportSink& sink, const PerfettoNumbers& taken = {});

// Whether a trace has slices of a profiler, and not only those that its cells were read from.
bool has_profiler_slices(const Trace& trace);
// First start of any slice; INT64_MAX without.
int64_t first_slice_ns(const Trace& trace);

}  // namespace stageline
