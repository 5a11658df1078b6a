// Writes a source trace again with the changes of an overlay.
#pragma once

#include <string>

#include "base/result.h"
#include "model/trace.h"
#include "model/trace_overlay.h"

namespace stageline {

// Streams the files of the overlay's part to `path` (gzip when it ends in .gz), event by event, as the
// source wrote them; memory is bounded by a window. Errors: kUnavailable when the source cannot be opened
// again, kIo, kBadInput when it changed since it was read.
Status write_overlay(const Trace& trace, const TraceOverlay& overlay, const std::string& path);

}  // namespace stageline
