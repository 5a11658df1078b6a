// Slices of a profiler trace as Perfetto's own format: what perfetto.cc writes where there are no pipeline cells.
#pragma once

#include "exporters/export_sink.h"
#include "model/trace.h"

namespace stageline {

// One process per rank, one thread per lane, and further ones for slices that overlap there without nesting, at most
// kMaxRowsPerLane of them; names, categories, and arrows from launches to their last device work. Arguments stay in the
// source. Streams: memory is that of one lane's slices that did not nest. O(slices), times the threads of a lane.
void write_profiler_slices(const Trace& trace, ExportSink& sink);

}  // namespace stageline
