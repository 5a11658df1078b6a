// Writes a source trace again with an overlay on it. Exporters and the engine share it. Outside this layer, call it
// through engine/engine.h.
#pragma once

#include "model/trace.h"
#include "model/trace_overlay.h"

namespace stageline {

// Streams the files of the overlay's part to `path` (gzip when it ends in .gz), event by event, as the source wrote
// them, with everything that stands around the events. When there are several files, the first gives the frame and the
// others only their events. A source that breaks off is closed properly. Memory is bounded by one window of the source
// and the largest event. Errors: kUnavailable when the source cannot be opened again, kIo, kBadInput when it changed
// since it was read or holds no events.
Status write_overlay_file(const Trace& trace, const TraceOverlay& overlay, const std::string& path);

// Returns one event with its changes. `extra` is put at the end of its args. `name` (JSON) replaces its name; "" keeps
// the old name.
std::string changed_event(std::string_view event, std::string_view extra, bool drop_args, std::string_view name);

}  // namespace stageline
